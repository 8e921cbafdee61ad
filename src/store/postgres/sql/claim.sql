-- Leases ready jobs of the queues $1, up to $2 of each: highest priority first, within it by the moment of becoming ready.
-- $3 floors by level, 0 first, ten for each queue. $4 lease ids, $5 durations in microseconds and $6 streams, one for each job
-- wanted, in the order of the queues. $7: its commit does not wait for the disk, which is set for this transaction and so for
-- nothing that comes after it.
-- One level at a time, so that what an urgent level has scheduled for later is never walked, and no order outside of the
-- lateral: that would lock all ten levels' jobs to take one's. Rows that others hold are passed over.
with wanted as (
    select c.queue_id, c.jobs, 10 * (c.n - 1) + 1 as floor, sum(c.jobs) over (order by c.n)::bigint - c.jobs as before
    from unnest($1::int[], $2::bigint[]) with ordinality c (queue_id, jobs, n)
),
picked as materialized (
    select p.place, w.before + p.n as n
    from wanted w
    cross join lateral (
        select q.place, row_number() over () as n
        from (
            select l.place
            from generate_series(9, 0, -1) level
            cross join lateral (
                select j.ctid as place
                from leasehold.job j
                where j.queue_id = w.queue_id
                    and j.priority = level
                    and j.lease_id is null
                    and not j.blocked
                    and j.ready_at > ($3::timestamptz[])[w.floor + level]
                    and j.ready_at <= now()
                order by j.ready_at, j.id
                limit w.jobs
                for no key update skip locked
            ) l
            limit w.jobs
        ) q
    ) p
)
update leasehold.job j
set lease_id = ($4::uuid[])[p.n],
    lease_duration = ($5::bigint[])[p.n],
    lease_until = clock_timestamp() + ($5::bigint[])[p.n] * interval '1 microsecond',
    lease_stream = ($6::bigint[])[p.n],
    attempt = j.attempt + 1,
    lease_number = j.lease_number + 1
from picked p
where j.ctid = p.place
    and (not $7::boolean or (select set_config('synchronous_commit', 'off', true)) = 'off')
returning j.id, j.queue_id, j.lease_id, j.payload, j.content_type, j.headers, j.priority, j.attempt, j.max_attempts,
    j.lease_number, j.enqueued_at, j.lease_until, j.available_at, j.ready_at, j.ordering_key, j.idempotency_key, j.last_error,
    j.traceparent, j.tracestate
