-- What is in each of queues $1: of each state $3 rows of an index at most. $2 has ten floors for each queue: no ready job
-- lies at or before them, and no lease ended at or before $4; what lies there may be dead rows that nobody may take away yet.
select ready.jobs as ready, scheduled.jobs as scheduled, blocked.jobs as blocked, leased.jobs as leased, dead.jobs as dead,
    oldest.at as oldest, clock_timestamp() as counted_at
from unnest($1::int[]) with ordinality u (queue_id, n)
cross join lateral (
    select count(r.ready_at) as jobs
    from (
        select l.ready_at
        from generate_series(9, 0, -1) level
        cross join lateral (
            select j.ready_at
            from leasehold.job j
            where j.queue_id = u.queue_id
                and j.priority = level
                and j.lease_id is null
                and not j.blocked
                and j.ready_at > ($2::timestamptz[])[(u.n - 1) * 10 + level + 1]
                and j.ready_at <= now()
            order by j.ready_at, j.id
            limit $3::bigint
        ) l
        limit $3::bigint
    ) r
) ready
cross join lateral (
    select min(l.ready_at) as at
    from generate_series(9, 0, -1) level
    cross join lateral (
        select j.ready_at
        from leasehold.job j
        where j.queue_id = u.queue_id
            and j.priority = level
            and j.lease_id is null
            and not j.blocked
            and j.ready_at > ($2::timestamptz[])[(u.n - 1) * 10 + level + 1]
            and j.ready_at <= now()
        order by j.ready_at, j.id
        limit 1
    ) l
) oldest
cross join lateral (
    select count(r.ready_at) as jobs
    from (
        select l.ready_at
        from generate_series(9, 0, -1) level
        cross join lateral (
            select j.ready_at
            from leasehold.job j
            where j.queue_id = u.queue_id
                and j.priority = level
                and j.lease_id is null
                and not j.blocked
                and j.ready_at > now()
            order by j.ready_at, j.id
            limit $3::bigint
        ) l
        limit $3::bigint
    ) r
) scheduled
cross join lateral (
    select count(r.one) as jobs
    from (select 1 as one from leasehold.job j where j.queue_id = u.queue_id and j.blocked limit $3::bigint) r
) blocked
cross join lateral (
    select count(r.one) as jobs
    from (
        select 1 as one
        from leasehold.job j
        where j.queue_id = u.queue_id and (j.lease_id is null)::int = 0 and j.lease_until > $4::timestamptz
        limit $3::bigint
    ) r
) leased
cross join lateral (
    select count(r.one) as jobs
    from (select 1 as one from leasehold.dead_job d where d.queue_id = u.queue_id limit $3::bigint) r
) dead
order by u.n
