-- ?1 [[job, place in its ordering key], …], ?2 now
-- Copies dead jobs to the live ones; they are removed in the same transaction. Those with keys are blocked until their keys go
-- on.
insert into job (
    id, queue_id, priority, available_at, ready_at, position, ordering_key, blocked, attempt, max_attempts, lease_number,
    enqueued_at, idempotency_key, content_type, headers, traceparent, tracestate, last_error, payload, caller
)
select
    dead.id, dead.queue_id, dead.priority, dead.available_at, max(dead.available_at, ?2),
    iif(dead.ordering_key is null, null, back.value ->> 1), dead.ordering_key, dead.ordering_key is not null, 0,
    dead.max_attempts, dead.lease_number, dead.enqueued_at, dead.idempotency_key, dead.content_type, dead.headers,
    dead.traceparent, dead.tracestate, dead.last_error, dead.payload, dead.caller
from json_each(?1) back
cross join dead_job dead on dead.id = back.value ->> 0
returning queue_id, ordering_key
