-- The jobs $1, live, dead, or acked and still kept; with payloads where $2.
select r.id, r.queue_id, r.queue_name, r.state, r.payload, r.payload_bytes, r.content_type, r.headers, r.priority, r.attempt,
    r.max_attempts, r.lease_number, r.enqueued_at, r.available_at, r.ready_at, r.lease_until, r.lease_stream,
    r.cancel_requested, r.ordering_key, r.idempotency_key, r.last_error, r.dead_at, r.expires_at, r.acked_at, r.traceparent,
    r.tracestate, r.caller
from unnest($1::bigint[]) u (id)
cross join lateral (
    select j.id, j.queue_id, (select q.name from leasehold.queue q where q.id = j.queue_id) as queue_name, case
            when j.lease_id is not null then 4
            when j.blocked then 3
            when j.ready_at > now() then 2
            else 1
        end::smallint as state,
        case when $2::boolean then j.payload end as payload, octet_length(j.payload)::bigint as payload_bytes, j.content_type, j.headers, j.priority, j.attempt,
        j.max_attempts, j.lease_number, j.enqueued_at, j.available_at,
        case when not j.blocked then j.ready_at end as ready_at, j.lease_until, j.lease_stream, j.cancel_requested,
        j.ordering_key, j.idempotency_key, j.last_error, null::timestamptz as dead_at, null::timestamptz as expires_at,
        null::timestamptz as acked_at, j.traceparent, j.tracestate, j.caller
    from leasehold.job j
    where j.id = u.id
    union all
    select d.id, d.queue_id, (select q.name from leasehold.queue q where q.id = d.queue_id), 5::smallint,
        case when $2::boolean then d.payload end, octet_length(d.payload)::bigint, d.content_type, d.headers, d.priority, d.attempt, d.max_attempts,
        d.lease_number, d.enqueued_at, d.available_at, null, null, null, false, d.ordering_key, d.idempotency_key,
        d.last_error, d.dead_at, d.expires_at, null, d.traceparent, d.tracestate, d.caller
    from leasehold.dead_job d
    where d.id = u.id
    union all
    select a.id, a.queue_id, (select q.name from leasehold.queue q where q.id = a.queue_id), 6::smallint,
        case when $2::boolean then a.payload end, octet_length(a.payload)::bigint, a.content_type, a.headers, a.priority, a.attempt, a.max_attempts,
        a.lease_number, a.enqueued_at, a.available_at, null, null, null, false, a.ordering_key, a.idempotency_key,
        a.last_error, null, a.expires_at, a.acked_at, a.traceparent, a.tracestate, a.caller
    from leasehold.acked_job a
    where a.id = u.id
    offset 0
) r
