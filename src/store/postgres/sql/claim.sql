-- Leases up to $5 ready jobs of queue $1: highest priority first, within it by the moment of becoming ready. $2 floors by
-- level, 0 first. $3 lease ids, $4 durations in microseconds and $6 streams, one for each job wanted. $7: its commit does not
-- wait for the disk, which is set for this transaction and so for nothing that comes after it.
-- One level at a time, so that what an urgent level has scheduled for later is never walked, and no order outside of the
-- lateral: that would lock all ten levels' jobs to take one's. Rows that others hold are passed over.
with picked as materialized (
    select p.place, row_number() over () as n
    from (
        select l.place
        from generate_series(9, 0, -1) level
        cross join lateral (
            select j.ctid as place
            from leasehold.job j
            where j.queue_id = $1::int
                and j.priority = level
                and j.lease_id is null
                and not j.blocked
                and j.ready_at > ($2::timestamptz[])[level + 1]
                and j.ready_at <= now()
            order by j.ready_at, j.id
            limit $5::bigint
            for no key update skip locked
        ) l
        limit $5::bigint
    ) p
)
update leasehold.job j
set lease_id = ($3::uuid[])[p.n],
    lease_duration = ($4::bigint[])[p.n],
    lease_until = clock_timestamp() + ($4::bigint[])[p.n] * interval '1 microsecond',
    lease_stream = ($6::bigint[])[p.n],
    attempt = j.attempt + 1,
    lease_number = j.lease_number + 1
from picked p
where j.ctid = p.place
    and (not $7::boolean or (select set_config('synchronous_commit', 'off', true)) = 'off')
returning j.id, j.lease_id, j.payload, j.content_type, j.headers, j.priority, j.attempt, j.max_attempts, j.lease_number,
    j.enqueued_at, j.lease_until, j.available_at, j.ready_at, j.ordering_key, j.idempotency_key, j.last_error, j.traceparent,
    j.tracestate
