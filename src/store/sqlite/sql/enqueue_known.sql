-- ?1 [[queue, key], …], ?2 now
-- Those idempotency keys that are known and not expired, by their place in the list.
select name.key as n, known.job_id, known.content
from json_each(?1) name
cross join idempotency_key known
    on known.queue_id = name.value ->> 0 and known.key = name.value ->> 1
where known.expires_at > ?2
