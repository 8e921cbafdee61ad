-- ?1 [job, …], ?2 now
-- Copies jobs that are done to the acked ones, where their queues keep such; they are removed in the same transaction.
insert into acked_job (
    id, queue_id, priority, available_at, position, ordering_key, attempt, max_attempts, lease_number, enqueued_at,
    acked_at, expires_at, idempotency_key, content_type, headers, traceparent, tracestate, last_error, payload,
    caller
)
select
    job.id, job.queue_id, job.priority, job.available_at, job.position, job.ordering_key, job.attempt, job.max_attempts,
    job.lease_number, job.enqueued_at, ?2, ?2 + queue.acked_retention, job.idempotency_key, job.content_type,
    job.headers, job.traceparent, job.tracestate, job.last_error, job.payload, job.caller
from json_each(?1) done
cross join job on job.id = done.value
cross join queue on queue.id = job.queue_id and queue.acked_retention is not null
