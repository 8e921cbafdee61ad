-- ? now, ? now, ? [job, …], all of them locked by this transaction and leased
-- Copies jobs that are done to the acked ones, where their queues keep such; they are removed in the same transaction.
insert into leasehold_acked_job (
    id, queue_id, priority, attempt, max_attempts, lease_number, position, enqueued_at, available_at, acked_at, expires_at,
    payload_bytes, ordering_key, idempotency_key, caller, content_type, traceparent, tracestate, headers, last_error, payload
)
select j.id, j.queue_id, j.priority, l.attempt, j.max_attempts, l.lease_number, j.position, j.enqueued_at, j.available_at,
    ?, ? + q.acked_retention, j.payload_bytes, j.ordering_key, j.idempotency_key, j.caller, j.content_type, j.traceparent,
    j.tracestate, j.headers, j.last_error, j.payload
from json_table(?, '$[*]' columns (id bigint path '$')) v
straight_join leasehold_job j force index (primary) on j.id = v.id
straight_join leasehold_lease l force index (primary) on l.job_id = j.id
straight_join leasehold_queue q force index (primary) on q.id = j.queue_id
where q.acked_retention is not null
