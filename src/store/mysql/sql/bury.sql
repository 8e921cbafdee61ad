-- ? now, ? now, ? [[job, [error] or [], attempt, lease number], …], all of them locked by this transaction
-- Copies jobs to the dead ones; they are removed in the same transaction.
insert into leasehold_dead_job (
    id, queue_id, priority, attempt, max_attempts, lease_number, position, enqueued_at, available_at, dead_at, expires_at,
    payload_bytes, ordering_key, idempotency_key, caller, content_type, traceparent, tracestate, headers, last_error, payload
)
select j.id, j.queue_id, j.priority, v.attempt, j.max_attempts, v.lease_number, j.position, j.enqueued_at, j.available_at,
    ?, ? + q.dead_retention, j.payload_bytes, j.ordering_key, j.idempotency_key, j.caller, j.content_type, j.traceparent,
    j.tracestate, j.headers, v.error, j.payload
from json_table(?, '$[*]' columns (
    id bigint path '$[0]', error mediumtext character set utf8mb4 path '$[1][0]', attempt int path '$[2]',
    lease_number bigint path '$[3]'
)) v
straight_join leasehold_job j force index (primary) on j.id = v.id
straight_join leasehold_queue q force index (primary) on q.id = j.queue_id
