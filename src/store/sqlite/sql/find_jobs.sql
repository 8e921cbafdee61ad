-- ?1 [job, …], ?2 with payloads, ?3 now
-- Those that are there, live, dead, or acked and still kept.
select
    job.id, job.queue_id, (select name from queue where queue.id = job.queue_id) as queue_name,
    case when job.lease_id is not null then 4 when job.blocked then 3 when job.ready_at > ?3 then 2 else 1 end as state,
    iif(?2, job.payload, null) as payload, length(job.payload) as payload_bytes, job.content_type, job.headers, job.priority, job.attempt,
    job.max_attempts, job.lease_number, job.enqueued_at, job.available_at, iif(job.blocked, null, job.ready_at) as ready_at,
    job.lease_until, job.lease_stream, job.cancel_requested, job.ordering_key, job.idempotency_key, job.last_error,
    null as dead_at, null as expires_at, null as acked_at, job.traceparent, job.tracestate, job.caller
from json_each(?1) ref
cross join job on job.id = ref.value
union all
select
    dead_job.id, dead_job.queue_id, (select name from queue where queue.id = dead_job.queue_id) as queue_name, 5 as state,
    iif(?2, dead_job.payload, null) as payload, length(dead_job.payload) as payload_bytes, dead_job.content_type, dead_job.headers, dead_job.priority,
    dead_job.attempt, dead_job.max_attempts, dead_job.lease_number, dead_job.enqueued_at, dead_job.available_at,
    null as ready_at, null as lease_until, null as lease_stream, 0 as cancel_requested, dead_job.ordering_key,
    dead_job.idempotency_key, dead_job.last_error, dead_job.dead_at, dead_job.expires_at, null as acked_at,
    dead_job.traceparent, dead_job.tracestate, dead_job.caller
from json_each(?1) ref
cross join dead_job on dead_job.id = ref.value
union all
select
    acked_job.id, acked_job.queue_id, (select name from queue where queue.id = acked_job.queue_id) as queue_name, 6 as state,
    iif(?2, acked_job.payload, null) as payload, length(acked_job.payload) as payload_bytes, acked_job.content_type, acked_job.headers,
    acked_job.priority, acked_job.attempt, acked_job.max_attempts, acked_job.lease_number, acked_job.enqueued_at,
    acked_job.available_at, null as ready_at, null as lease_until, null as lease_stream, 0 as cancel_requested,
    acked_job.ordering_key, acked_job.idempotency_key, acked_job.last_error, null as dead_at, acked_job.expires_at,
    acked_job.acked_at, acked_job.traceparent, acked_job.tracestate, acked_job.caller
from json_each(?1) ref
cross join acked_job on acked_job.id = ref.value
