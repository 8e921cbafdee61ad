-- ? with payloads, ? [job, …], three times
-- Those that are there, live, dead, or acked and still kept.
select j.id, j.queue_id, q.name as queue_name, case
        when l.job_id is not null then 4
        when r.id is null then 3
        when r.ready_at > timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6)) then 2
        else 1
    end as state,
    if(?, j.payload, null) as payload, j.payload_bytes, j.content_type, j.headers, j.priority,
    coalesce(l.attempt, r.attempt, b.attempt, 0) as attempt, j.max_attempts,
    coalesce(l.lease_number, r.lease_number, b.lease_number, 0) as lease_number, j.enqueued_at, j.available_at,
    if(l.job_id is null and r.id is null, null, j.ready_at) as ready_at, l.lease_until, l.stream as lease_stream,
    j.cancel_requested, j.ordering_key, j.idempotency_key, j.last_error, cast(null as signed) as dead_at,
    cast(null as signed) as expires_at, cast(null as signed) as acked_at, j.traceparent, j.tracestate, j.caller,
    coalesce(j.position, j.id) as position
from json_table(?, '$[*]' columns (id bigint path '$')) v
straight_join leasehold_job j force index (primary) on j.id = v.id
left join leasehold_queue q force index (primary) on q.id = j.queue_id
left join leasehold_lease l force index (primary) on l.job_id = j.id
left join leasehold_ready r force index (primary)
    on r.queue_id = j.queue_id and r.tier = 9 - j.priority and r.ready_at = j.ready_at and r.id = j.id
left join leasehold_blocked b force index (primary)
    on b.queue_id = j.queue_id and b.ordering_key = j.ordering_key and b.position = coalesce(j.position, j.id)
union all
select d.id, d.queue_id, q.name, 5, if(?, d.payload, null), d.payload_bytes, d.content_type, d.headers, d.priority,
    d.attempt, d.max_attempts, d.lease_number, d.enqueued_at, d.available_at, null, null, null, 0, d.ordering_key,
    d.idempotency_key, d.last_error, d.dead_at, d.expires_at, null, d.traceparent, d.tracestate, d.caller, d.id
from json_table(?, '$[*]' columns (id bigint path '$')) v
straight_join leasehold_dead_job d force index (primary) on d.id = v.id
left join leasehold_queue q force index (primary) on q.id = d.queue_id
union all
select a.id, a.queue_id, q.name, 6, if(?, a.payload, null), a.payload_bytes, a.content_type, a.headers, a.priority,
    a.attempt, a.max_attempts, a.lease_number, a.enqueued_at, a.available_at, null, null, null, 0, a.ordering_key,
    a.idempotency_key, a.last_error, null, a.expires_at, a.acked_at, a.traceparent, a.tracestate, a.caller, a.id
from json_table(?, '$[*]' columns (id bigint path '$')) v
straight_join leasehold_acked_job a force index (primary) on a.id = v.id
left join leasehold_queue q force index (primary) on q.id = a.queue_id
