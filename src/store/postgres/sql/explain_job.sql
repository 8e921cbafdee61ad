-- Job $1 and all that may keep it from running; replicas not seen for $2 microseconds are as if they were not. Whether
-- somebody holds its row is found by asking for it without waiting; the lock goes with the statement.
with record as materialized (
    select r.id, r.queue_id, r.queue_name, r.state, r.payload, r.payload_bytes, r.content_type, r.headers, r.priority, r.attempt,
    r.max_attempts, r.lease_number, r.enqueued_at, r.available_at, r.ready_at, r.lease_until, r.lease_stream,
    r.cancel_requested, r.ordering_key, r.idempotency_key, r.last_error, r.dead_at, r.expires_at, r.acked_at, r.traceparent,
    r.tracestate, r.caller
    from (
        select j.id, j.queue_id, (select q.name from leasehold.queue q where q.id = j.queue_id) as queue_name, case
                when j.lease_id is not null then 4
                when j.blocked then 3
                when j.ready_at > now() then 2
                else 1
            end::smallint as state,
            null::bytea as payload, octet_length(j.payload)::bigint as payload_bytes, j.content_type, j.headers, j.priority, j.attempt,
            j.max_attempts, j.lease_number, j.enqueued_at, j.available_at,
            case when not j.blocked then j.ready_at end as ready_at, j.lease_until, j.lease_stream, j.cancel_requested,
            j.ordering_key, j.idempotency_key, j.last_error, null::timestamptz as dead_at, null::timestamptz as expires_at,
            null::timestamptz as acked_at, j.traceparent, j.tracestate, j.caller
        from leasehold.job j
        where j.id = $1::bigint
        union all
        select d.id, d.queue_id, (select q.name from leasehold.queue q where q.id = d.queue_id), 5::smallint,
            null, octet_length(d.payload)::bigint, d.content_type, d.headers, d.priority, d.attempt, d.max_attempts,
            d.lease_number, d.enqueued_at, d.available_at, null, null, null, false, d.ordering_key, d.idempotency_key,
            d.last_error, d.dead_at, d.expires_at, null, d.traceparent, d.tracestate, d.caller
        from leasehold.dead_job d
        where d.id = $1::bigint
        union all
        select a.id, a.queue_id, (select q.name from leasehold.queue q where q.id = a.queue_id), 6::smallint,
            null, octet_length(a.payload)::bigint, a.content_type, a.headers, a.priority, a.attempt, a.max_attempts,
            a.lease_number, a.enqueued_at, a.available_at, null, null, null, false, a.ordering_key, a.idempotency_key,
            a.last_error, null, a.expires_at, a.acked_at, a.traceparent, a.tracestate, a.caller
        from leasehold.acked_job a
        where a.id = $1::bigint
        offset 0
    ) r
),
present as materialized (
    select p.id, p.name, p.seen_at
    from leasehold.replica p
    where p.id >= 0 and p.seen_at > now() - $2::bigint * interval '1 microsecond'
)
select r.id, r.queue_id, r.queue_name, r.state, r.payload, r.payload_bytes, r.content_type, r.headers, r.priority, r.attempt,
    r.max_attempts, r.lease_number, r.enqueued_at, r.available_at, r.ready_at, r.lease_until, r.lease_stream,
    r.cancel_requested, r.ordering_key, r.idempotency_key, r.last_error, r.dead_at, r.expires_at, r.acked_at, r.traceparent,
    r.tracestate, r.caller,
    clock_timestamp() as looked_at,
    r.state <= 4 and not coalesce(free.is_free, false) as held,
    coalesce((
        select q.paused or q.closing_since is not null from leasehold.queue q where q.id = r.queue_id
    ), false) as paused,
    head.id as head,
    coalesce((
        select count(1)
        from (
            select b.id
            from leasehold.job b
            where b.queue_id = r.queue_id and b.ordering_key = r.ordering_key and b.blocked
                and b.position < (select j.position from leasehold.job j where j.id = r.id)
            limit 10001
        ) b
        where r.state = 3 and r.ordering_key is not null
    ), 0) as ahead_in_key,
    case when r.state = 1 then (
        select count(1)
        from (
            select l.id
            from generate_series(9, r.priority, -1) level
            cross join lateral (
                select j.id
                from leasehold.job j
                where j.queue_id = r.queue_id and j.priority = level and j.lease_id is null and not j.blocked
                    and j.ready_at <= case when level = r.priority then r.ready_at else now() end
                    and (level > r.priority or (j.ready_at, j.id) < (r.ready_at, r.id))
                order by j.ready_at, j.id
                limit 10001
            ) l
            limit 10001
        ) l
    ) else 0 end as ahead,
    coalesce(demand.streams, 0)::bigint as streams, coalesce(demand.free_credit, 0)::bigint as free_credit,
    holder.stream, holder.replica, holder.consumer, holder.peer, holder.stream_caller, holder.queues,
    holder.max_in_flight, holder.in_flight, holder.oldest_age, holder.opened_at, holder.seen_at
from record r
left join lateral (
    select true as is_free from leasehold.job j where j.id = r.id for share skip locked
) free on true
left join lateral (
    select j.id
    from leasehold.ordering_key o
    cross join lateral (select j.id from leasehold.job j where j.id = o.head and not j.blocked offset 0) j
    where r.state = 3 and o.queue_id = r.queue_id and o.ordering_key = r.ordering_key
    offset 0
) head on true
left join lateral (
    select sum(d.streams) as streams, sum(d.free_credit) as free_credit
    from present p
    cross join lateral (
        select d.streams, d.free_credit
        from leasehold.replica_demand d
        where d.replica = p.id and d.queue_name = r.queue_name
        offset 0
    ) d
) demand on true
left join lateral (
    select s.id as stream, p.name as replica, s.consumer, s.peer, s.caller as stream_caller, s.queues, s.max_in_flight,
        s.in_flight, (extract(epoch from now() - s.oldest_lease_at) * 1000000)::bigint as oldest_age, s.opened_at, p.seen_at
    from leasehold.replica_stream s
    cross join lateral (select p.name, p.seen_at from present p where p.id = s.replica) p
    where s.id = r.lease_stream
    offset 0
) holder on true
