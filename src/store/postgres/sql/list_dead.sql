-- Dead jobs of queue $1 before the one that died at $2 with id $3, the ones that died last first: that died after $4 and
-- before $5, whose error contains $6, of ordering key $7 and caller $8, where these are given. $9 rows are looked at, $10
-- brought, until $11 bytes are reached; with payloads where $12. next_at and next_id: where to go on before; one row at least
-- for their sake.
with walked as materialized (
    select d.id, d.dead_at, row_number() over (order by d.dead_at desc, d.id desc) as n, d.fits, d.bytes
    from (
        select d.id, d.dead_at, coalesce(($6::text is null or strpos(d.last_error collate "C", $6::text) > 0)
                and ($7::text is null or d.ordering_key = $7::text)
                and ($8::text is null or d.caller = $8::text), false) as fits,
            case when $12::boolean then octet_length(d.payload) else 0 end + coalesce(octet_length(d.headers), 0)
                + coalesce(octet_length(d.last_error), 0) as bytes
        from leasehold.dead_job d
        where d.queue_id = $1::int
            and (d.dead_at, d.id) < (coalesce($2::timestamptz, 'infinity'), coalesce($3::bigint, 0))
            and d.dead_at > coalesce($4::timestamptz, '-infinity')
            and d.dead_at < coalesce($5::timestamptz, 'infinity')
        order by d.dead_at desc, d.id desc
        limit $9::bigint
    ) d
),
picked as materialized (
    select w.id, w.n
    from (
        select w.id, w.n, sum(w.bytes) over (order by w.n) - w.bytes as before
        from walked w
        where w.fits
        order by w.n
        limit $10::bigint
    ) w
    where w.before <= $11::bigint
),
stop as (
    select case
        when (select count(1) from picked p) < (select count(1) from walked w where w.fits) then (select max(p.n) from picked p)
        when (select count(1) from walked w) >= $9::bigint then $9::bigint
    end as n
)
select (select w.dead_at from walked w, stop s where w.n = s.n) as next_at,
    (select w.id from walked w, stop s where w.n = s.n) as next_id,
    r.id, r.queue_id, r.queue_name, r.state, r.payload, r.payload_bytes, r.content_type, r.headers, r.priority, r.attempt,
    r.max_attempts, r.lease_number, r.enqueued_at, r.available_at, r.ready_at, r.lease_until, r.lease_stream,
    r.cancel_requested, r.ordering_key, r.idempotency_key, r.last_error, r.dead_at, r.expires_at, r.acked_at, r.traceparent,
    r.tracestate, r.caller
from stop s
left join picked p on true
left join lateral (
    select d.id, d.queue_id, (select q.name from leasehold.queue q where q.id = d.queue_id) as queue_name, 5::smallint as state,
        case when $12::boolean then d.payload end as payload, octet_length(d.payload)::bigint as payload_bytes, d.content_type, d.headers, d.priority, d.attempt,
        d.max_attempts, d.lease_number, d.enqueued_at, d.available_at, null::timestamptz as ready_at,
        null::timestamptz as lease_until, null::bigint as lease_stream, false as cancel_requested, d.ordering_key,
        d.idempotency_key, d.last_error, d.dead_at, d.expires_at, null::timestamptz as acked_at, d.traceparent,
        d.tracestate, d.caller
    from leasehold.dead_job d
    where d.id = p.id
    offset 0
) r on true
order by p.n
