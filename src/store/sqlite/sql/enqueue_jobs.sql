-- ?1 [[id, queue, priority, available_at, ready_at, ordering key, blocked, max_attempts, idempotency key, content type,
--      headers, traceparent, tracestate, offset from 1, length], …], ?2 all payloads in one, ?3 now, ?4 who enqueues them
-- (No payload at all arrives as null.)
insert into job (
    id, queue_id, priority, available_at, ready_at, position, ordering_key, blocked, max_attempts, enqueued_at,
    idempotency_key, content_type, headers, traceparent, tracestate, payload, caller
)
select
    item.value ->> 0, item.value ->> 1, item.value ->> 2, item.value ->> 3, item.value ->> 4,
    iif(item.value ->> 5 is null, null, item.value ->> 0), item.value ->> 5,
    item.value ->> 6, item.value ->> 7, ?3, item.value ->> 8, item.value ->> 9, item.value ->> 10, item.value ->> 11,
    item.value ->> 12, coalesce(substr(?2, item.value ->> 13, item.value ->> 14), x''), ?4
from json_each(?1) item
