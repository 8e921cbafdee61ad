-- ? now, ? now, ? now, ? reservation, ? place
insert into leasehold_job (
    queue_id, priority, max_attempts, enqueued_at, available_at, ready_at, payload_bytes, ordering_key, caller, content_type,
    traceparent, tracestate, headers, payload
)
select j.queue_id, j.priority, j.max_attempts, ?, ? + j.delay, ? + j.delay, octet_length(j.payload), j.ordering_key,
    j.caller, j.content_type, j.traceparent, j.tracestate, j.headers, j.payload
from leasehold_reservation_job j force index (primary)
where j.reservation_id = ? and j.place = ?
