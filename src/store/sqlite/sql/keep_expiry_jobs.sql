-- ?1 reservation, ?2 [[queue, delay, priority, max_attempts, ordering key, content type, headers, traceparent, tracestate,
--      offset from 1, length], …], ?3 all payloads in one, ?4 caller
-- (No payload at all arrives as null.)
insert into reservation_job (
    reservation_id, place, queue_id, delay, priority, max_attempts, ordering_key, content_type, headers, traceparent,
    tracestate, payload, caller
)
select ?1, item.key, item.value ->> 0, item.value ->> 1, item.value ->> 2, item.value ->> 3, item.value ->> 4,
    item.value ->> 5, item.value ->> 6, item.value ->> 7, item.value ->> 8,
    coalesce(substr(?3, item.value ->> 9, item.value ->> 10), x''), ?4
from json_each(?2) item
