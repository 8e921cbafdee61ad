-- Live jobs of queue $1 behind job $2, in the order of ids: in one of the states $3 (1 ready, 2 scheduled, 3 blocked, 4
-- leased), of ordering key $4 and caller $5 where these are given. $6 rows are looked at, $7 brought, until $8 bytes are
-- reached; with payloads where $9. next_id: where to go on behind; one row at least for its sake.
with walked as materialized (
    select j.id, row_number() over (order by j.id) as n, j.fits, case when j.fits then j.bytes end as bytes
    from (
        select j.id, coalesce(j.queue_id = $1::int
                and case when j.lease_id is not null then 4 when j.blocked then 3 when j.ready_at > now() then 2 else 1 end
                    = any ($3::int[])
                and ($4::text is null or j.ordering_key = $4::text)
                and ($5::text is null or j.caller = $5::text), false) as fits,
            case when $9::boolean then octet_length(j.payload) else 0 end + coalesce(octet_length(j.headers), 0)
                + coalesce(octet_length(j.last_error), 0) as bytes
        from leasehold.job j
        where j.id > $2::bigint
        order by j.id
        limit $6::bigint
    ) j
),
picked as materialized (
    select w.id, w.n
    from (
        select w.id, w.n, sum(w.bytes) over (order by w.n) - w.bytes as before
        from walked w
        where w.fits
        order by w.n
        limit $7::bigint
    ) w
    where w.before <= $8::bigint
),
stop as (
    select case
        when (select count(1) from picked p) < (select count(1) from walked w where w.fits) then (select max(p.n) from picked p)
        when (select count(1) from walked w) >= $6::bigint then $6::bigint
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
    select j.id, j.queue_id, (select q.name from leasehold.queue q where q.id = j.queue_id) as queue_name, case
            when j.lease_id is not null then 4
            when j.blocked then 3
            when j.ready_at > now() then 2
            else 1
        end::smallint as state,
        case when $9::boolean then j.payload end as payload, octet_length(j.payload)::bigint as payload_bytes, j.content_type, j.headers, j.priority, j.attempt,
        j.max_attempts, j.lease_number, j.enqueued_at, j.available_at,
        case when not j.blocked then j.ready_at end as ready_at, j.lease_until, j.lease_stream, j.cancel_requested,
        j.ordering_key, j.idempotency_key, j.last_error, null::timestamptz as dead_at, null::timestamptz as expires_at,
        null::timestamptz as acked_at, j.traceparent, j.tracestate, j.caller
    from leasehold.job j
    where j.id = p.id
    offset 0
) r on true
order by p.n
