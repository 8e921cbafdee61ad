-- Counting. Each count reads its rows one by one in the order of an index, and stops: a bitmap of the index would be of all its
-- rows, however few are wanted.

-- What is in each of these queues: of each state at_most rows of an index. There are ten floors for each queue: no ready job
-- lies at or before them, and no lease ended at or before lease_floor; what lies there may be dead rows that nobody may take
-- away yet.
create function leasehold.count_jobs(queues int[], floors timestamptz[], at_most bigint, lease_floor timestamptz)
returns table (
    ready bigint, scheduled bigint, blocked bigint, leased bigint, dead bigint, oldest timestamptz, counted_at timestamptz
) language sql
set enable_bitmapscan = off
as $$
select ready.jobs as ready, scheduled.jobs as scheduled, blocked.jobs as blocked, leased.jobs as leased, dead.jobs as dead,
    oldest.at as oldest, clock_timestamp() as counted_at
from unnest(queues) with ordinality u (queue_id, n)
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
                and j.ready_at > floors[(u.n - 1) * 10 + level + 1]
                and j.ready_at <= now()
            order by j.ready_at, j.id
            limit at_most
        ) l
        limit at_most
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
            and j.ready_at > floors[(u.n - 1) * 10 + level + 1]
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
            limit at_most
        ) l
        limit at_most
    ) r
) scheduled
cross join lateral (
    select count(r.one) as jobs
    from (select 1 as one from leasehold.job j where j.queue_id = u.queue_id and j.blocked limit at_most) r
) blocked
cross join lateral (
    select count(r.one) as jobs
    from (
        select 1 as one
        from leasehold.job j
        where j.queue_id = u.queue_id and (j.lease_id is null)::int = 0 and j.lease_until > lease_floor
        limit at_most
    ) r
) leased
cross join lateral (
    select count(r.one) as jobs
    from (select 1 as one from leasehold.dead_job d where d.queue_id = u.queue_id limit at_most) r
) dead
order by u.n
$$;

-- Jobs of a queue in the states asked for, blocked ones only behind a key: of each state at_most rows of an index, and how many
-- of these were enqueued before an instant, where there is one.
create function leasehold.count_purgeable(
    queue int, ready boolean, scheduled boolean, blocked boolean, dead boolean, acked boolean, before timestamptz,
    at_most bigint
) returns table (walked bigint, found bigint) language sql
set enable_bitmapscan = off
as $$
select r.walked, r.found
from (
    (
        select count(j.enqueued_at) as walked, count(j.enqueued_at) filter (where j.enqueued_at < before or before is null) as found
        from (
            select j.enqueued_at
            from generate_series(9, 0, -1) level
            cross join lateral (
                select j.enqueued_at
                from leasehold.job j
                where count_purgeable.ready
                    and j.queue_id = queue
                    and j.priority = level
                    and j.lease_id is null
                    and not j.blocked
                    and j.ready_at <= now()
                limit at_most
            ) j
            limit at_most
        ) j
    )
    union all
    (
        select count(j.enqueued_at), count(j.enqueued_at) filter (where j.enqueued_at < before or before is null)
        from (
            select j.enqueued_at
            from generate_series(9, 0, -1) level
            cross join lateral (
                select j.enqueued_at
                from leasehold.job j
                where count_purgeable.scheduled
                    and j.queue_id = queue
                    and j.priority = level
                    and j.lease_id is null
                    and not j.blocked
                    and j.ready_at > now()
                limit at_most
            ) j
            limit at_most
        ) j
    )
    union all
    (
        select count(j.enqueued_at), count(j.enqueued_at) filter (where j.enqueued_at < before or before is null)
        from (
            select j.enqueued_at
            from leasehold.job j
            where count_purgeable.blocked and j.queue_id = queue and j.blocked and j.ordering_key >= ''
            limit at_most
        ) j
    )
    union all
    (
        select count(d.enqueued_at), count(d.enqueued_at) filter (where d.enqueued_at < before or before is null)
        from (
            select d.enqueued_at from leasehold.dead_job d where count_purgeable.dead and d.queue_id = queue limit at_most
        ) d
    )
    union all
    (
        select count(a.enqueued_at), count(a.enqueued_at) filter (where a.enqueued_at < before or before is null)
        from (
            select a.enqueued_at from leasehold.acked_job a where count_purgeable.acked and a.queue_id = queue limit at_most
        ) a
    )
) r
$$;

