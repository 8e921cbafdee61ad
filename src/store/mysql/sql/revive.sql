-- ? now, ? [[job, place in its ordering key or none, as a list], …], all of them locked by this transaction
-- Copies dead jobs to the live ones; they are removed in the same transaction.
insert into leasehold_job (
    id, queue_id, priority, max_attempts, position, enqueued_at, available_at, ready_at, payload_bytes, ordering_key,
    idempotency_key, caller, content_type, traceparent, tracestate, headers, last_error, payload
)
select d.id, d.queue_id, d.priority, d.max_attempts, v.position, d.enqueued_at, d.available_at,
    greatest(d.available_at, ?), d.payload_bytes, d.ordering_key, d.idempotency_key, d.caller, d.content_type,
    d.traceparent, d.tracestate, d.headers, d.last_error, d.payload
from json_table(?, '$[*]' columns (id bigint path '$[0]', position bigint path '$[1][0]')) v
straight_join leasehold_dead_job d force index (primary) on d.id = v.id
