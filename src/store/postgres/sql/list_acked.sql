-- As list_jobs.sql, of acked jobs that are kept: of queue $1 behind job $2, of ordering key $3 and caller $4 where these are given; $5 rows
-- are looked at, $6 brought, until $7 bytes are reached; with payloads where $8.
with walked as materialized (
    select a.id, row_number() over (order by a.id) as n, a.fits, a.bytes
    from (
        select a.id, coalesce(($3::text is null or a.ordering_key = $3::text)
                and ($4::text is null or a.caller = $4::text), false) as fits,
            case when $8::boolean then octet_length(a.payload) else 0 end + coalesce(octet_length(a.headers), 0)
                + coalesce(octet_length(a.last_error), 0) as bytes
        from leasehold.acked_job a
        where a.queue_id = $1::int and a.id > $2::bigint
        order by a.id
        limit $5::bigint
    ) a
),
picked as materialized (
    select w.id, w.n
    from (
        select w.id, w.n, sum(w.bytes) over (order by w.n) - w.bytes as before
        from walked w
        where w.fits
        order by w.n
        limit $6::bigint
    ) w
    where w.before <= $7::bigint
),
stop as (
    select case
        when (select count(1) from picked p) < (select count(1) from walked w where w.fits) then (select max(p.n) from picked p)
        when (select count(1) from walked w) >= $5::bigint then $5::bigint
    end as n
)
select (select w.id from walked w, stop s where w.n = s.n) as next_id,
    r.id, r.queue_id, r.queue_name, r.state, r.payload, r.payload_bytes, r.content_type, r.headers, r.priority, r.attempt,
    r.max_attempts, r.lease_number, r.enqueued_at, r.available_at, r.ready_at, r.lease_until, r.lease_stream,
    r.cancel_requested, r.ordering_key, r.idempotency_key, r.last_error, r.dead_at, r.expires_at, r.acked_at, r.traceparent,
    r.tracestate, r.caller
from stop s
left join picked p on true
left join lateral (
    select a.id, a.queue_id, (select q.name from leasehold.queue q where q.id = a.queue_id) as queue_name, 6::smallint as state,
        case when $8::boolean then a.payload end as payload, octet_length(a.payload)::bigint as payload_bytes, a.content_type, a.headers, a.priority, a.attempt, a.max_attempts,
        a.lease_number, a.enqueued_at, a.available_at, null::timestamptz as ready_at, null::timestamptz as lease_until, null::bigint as lease_stream, false as cancel_requested, a.ordering_key, a.idempotency_key,
        a.last_error, null::timestamptz as dead_at, a.expires_at, a.acked_at, a.traceparent, a.tracestate, a.caller
    from leasehold.acked_job a
    where a.id = p.id
    offset 0
) r on true
order by p.n
