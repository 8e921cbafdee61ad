-- ?1 job, ?2 now, ?3 replicas not seen since then are as if they were not
with record as materialized (
    select
    job.id, job.queue_id, (select name from queue where queue.id = job.queue_id) as queue_name,
    case when job.lease_id is not null then 4 when job.blocked then 3 when job.ready_at > ?2 then 2 else 1 end as state,
    null as payload, length(job.payload) as payload_bytes, job.content_type, job.headers, job.priority, job.attempt,
    job.max_attempts, job.lease_number, job.enqueued_at, job.available_at, iif(job.blocked, null, job.ready_at) as ready_at,
    job.lease_until, job.lease_stream, job.cancel_requested, job.ordering_key, job.idempotency_key, job.last_error,
    null as dead_at, null as expires_at, null as acked_at, job.traceparent, job.tracestate, job.caller,
        job.position
    from job where job.id = ?1
    union all
    select
    dead_job.id, dead_job.queue_id, (select name from queue where queue.id = dead_job.queue_id) as queue_name, 5 as state,
    null as payload, length(dead_job.payload) as payload_bytes, dead_job.content_type, dead_job.headers, dead_job.priority,
    dead_job.attempt, dead_job.max_attempts, dead_job.lease_number, dead_job.enqueued_at, dead_job.available_at,
    null as ready_at, null as lease_until, null as lease_stream, 0 as cancel_requested, dead_job.ordering_key,
    dead_job.idempotency_key, dead_job.last_error, dead_job.dead_at, dead_job.expires_at, null as acked_at,
    dead_job.traceparent, dead_job.tracestate, dead_job.caller,
        null
    from dead_job where dead_job.id = ?1
    union all
    select
    acked_job.id, acked_job.queue_id, (select name from queue where queue.id = acked_job.queue_id) as queue_name, 6 as state,
    null as payload, length(acked_job.payload) as payload_bytes, acked_job.content_type, acked_job.headers,
    acked_job.priority, acked_job.attempt, acked_job.max_attempts, acked_job.lease_number, acked_job.enqueued_at,
    acked_job.available_at, null as ready_at, null as lease_until, null as lease_stream, 0 as cancel_requested,
    acked_job.ordering_key, acked_job.idempotency_key, acked_job.last_error, null as dead_at, acked_job.expires_at,
    acked_job.acked_at, acked_job.traceparent, acked_job.tracestate, acked_job.caller,
        null
    from acked_job where acked_job.id = ?1
),
demand as materialized (
    select coalesce(sum(streams), 0) as streams, coalesce(sum(free_credit), 0) as free_credit
    from replica
    cross join replica_demand said on said.replica = replica.id and said.queue_name = (select queue_name from record)
    where replica.seen_at > ?3
)
select
    record.id, record.queue_id, record.queue_name, record.state, record.payload, record.payload_bytes, record.content_type,
    record.headers, record.priority, record.attempt, record.max_attempts, record.lease_number, record.enqueued_at,
    record.available_at, record.ready_at, record.lease_until, record.lease_stream, record.cancel_requested,
    record.ordering_key, record.idempotency_key, record.last_error, record.dead_at, record.expires_at, record.acked_at,
    record.traceparent, record.tracestate, record.caller,
    coalesce((select paused or closing_since is not null from queue where id = record.queue_id), 0) as paused,
    iif(record.state = 3, (
        select id from job
        where queue_id = record.queue_id and ordering_key = record.ordering_key and blocked = 0 limit 1
    ), null) as head,
    iif(record.state = 3, (
        select count(*) from (
            select 1 from job
            where queue_id = record.queue_id and ordering_key = record.ordering_key and blocked = 1
                and position < record.position
            limit 10001
        )
    ), 0) as ahead_in_key,
    iif(record.state = 1, (
        select count(*) from (
            select 1 from json_each('[9, 8, 7, 6, 5, 4, 3, 2, 1, 0]') level
            cross join job
            where level.value >= record.priority and job.queue_id = record.queue_id and job.priority = level.value
                and job.lease_id is null and job.blocked = 0 and job.ready_at <= ?2
                and (level.value > record.priority or (job.ready_at, job.id) < (record.ready_at, record.id))
            limit 10001
        )
    ), 0) as ahead,
    demand.streams, demand.free_credit,
    stream.id as stream, replica.name as replica, stream.consumer, stream.peer, stream.caller as stream_caller, stream.queues,
    stream.max_in_flight, stream.in_flight, ?2 - stream.oldest_lease_at as oldest_age, stream.opened_at, replica.seen_at
from record
cross join demand
left join replica_stream stream on stream.id = record.lease_stream
    and stream.replica in (select id from replica where seen_at > ?3)
left join replica on replica.id = stream.replica
