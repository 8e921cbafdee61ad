-- ?1 [[job, error], …], ?2 now
-- Copies jobs to the dead ones; they are removed in the same transaction. Error: as in return.sql.
insert into dead_job (
    id, queue_id, priority, available_at, position, ordering_key, attempt, max_attempts, lease_number, enqueued_at,
    dead_at, expires_at, idempotency_key, content_type, headers, traceparent, tracestate, last_error, payload, caller
)
select
    job.id, job.queue_id, job.priority, job.available_at, job.position, job.ordering_key, job.attempt,
    job.max_attempts, job.lease_number, job.enqueued_at, ?2, ?2 + queue.dead_retention, job.idempotency_key, job.content_type, job.headers,
    job.traceparent, job.tracestate, iif(dead.value ->> 1 is null, job.last_error, nullif(dead.value ->> 1, '')),
    job.payload, job.caller
from json_each(?1) dead
cross join job on job.id = dead.value ->> 0
cross join queue on queue.id = job.queue_id
