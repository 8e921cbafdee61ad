-- ?1 [[queue, key, job, content, hits, expires_at], …]
-- The keys are new or expired.
insert into idempotency_key (queue_id, key, job_id, content, hits, expires_at)
select item.value ->> 0, item.value ->> 1, item.value ->> 2, unhex(item.value ->> 3), item.value ->> 4, item.value ->> 5
from json_each(?1) item
where true
on conflict (queue_id, key) do update set
    job_id = excluded.job_id, content = excluded.content, hits = excluded.hits, expires_at = excluded.expires_at
