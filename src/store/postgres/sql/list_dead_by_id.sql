-- As list_jobs.sql, of dead jobs: of queue $1 behind job $2, of ordering key $3 and caller $4 where these are given; $5 rows
-- are looked at, $6 brought, until $7 bytes are reached; with payloads where $8.
with walked as materialized (
    select d.id, row_number() over (order by d.id) as n, d.fits, d.bytes
    from (
        select d.id, coalesce(d.queue_id = $1::int
                and ($3::text is null or d.ordering_key = $3::text)
                and ($4::text is null or d.caller = $4::text), false) as fits,
            case when $8::boolean then octet_length(d.payload) else 0 end + coalesce(octet_length(d.headers), 0)
                + coalesce(octet_length(d.last_error), 0) as bytes
        from leasehold.dead_job d
        where d.id > $2::bigint
        order by d.id
        limit $5::bigint
    ) d
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
    select d.id, d.queue_id, (select q.name from leasehold.queue q where q.id = d.queue_id) as queue_name, 5::smallint as state,
        case when $8::boolean then d.payload end as payload, octet_length(d.payload)::bigint as payload_bytes, d.content_type, d.headers, d.priority, d.attempt,
        d.max_attempts, d.lease_number, d.enqueued_at, d.available_at, null::timestamptz as ready_at,
        null::timestamptz as lease_until, null::bigint as lease_stream, false as cancel_requested, d.ordering_key,
        d.idempotency_key, d.last_error, d.dead_at, d.expires_at, null::timestamptz as acked_at, d.traceparent,
        d.tracestate, d.caller
    from leasehold.dead_job d
    where d.id = p.id
    offset 0
) r on true
order by p.n
