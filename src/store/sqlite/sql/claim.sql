-- ?1 [[job, lease, until, duration, stream], …]
-- Grants each lease. The jobs were found ready in the same transaction.
update job set
    lease_id = unhex(slot.value ->> 1), lease_until = slot.value ->> 2, lease_duration = slot.value ->> 3,
    lease_stream = slot.value ->> 4,
    attempt = attempt + 1, lease_number = lease_number + 1
from json_each(?1) slot
where job.id = slot.value ->> 0
returning
    id, queue_id, lease_id, payload, content_type, headers, priority, attempt, max_attempts, lease_number, enqueued_at, lease_until,
    available_at, ready_at, ordering_key, idempotency_key, last_error, traceparent, tracestate
