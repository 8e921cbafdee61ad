-- ?1 [[queue, key, hits], …]
update idempotency_key set hits = hits + (hit.value ->> 2)
from json_each(?1) hit
where idempotency_key.queue_id = hit.value ->> 0 and idempotency_key.key = hit.value ->> 1
