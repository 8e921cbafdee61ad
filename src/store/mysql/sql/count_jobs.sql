-- ? place. For each tier: ? queue, ? floor, ? now, ? how many. Again for each tier: ? queue, ? floor, ? now. For each tier: ? queue,
-- ? now, ? how many. ? queue, ? how many. ? queue, ? floor of leases, ? how many. ? queue, ? how many.
-- What is in a queue, one tier after the other, since no walk over several begins at a floor.
select ? as n,
    (
        select count(*) from (
            (
                select 1 as one from leasehold_ready r force index (primary)
                where r.queue_id = ? and r.tier = 0 and r.ready_at > ? and r.ready_at <= ? limit ?
            )
            union all
            (
                select 1 as one from leasehold_ready r force index (primary)
                where r.queue_id = ? and r.tier = 1 and r.ready_at > ? and r.ready_at <= ? limit ?
            )
            union all
            (
                select 1 as one from leasehold_ready r force index (primary)
                where r.queue_id = ? and r.tier = 2 and r.ready_at > ? and r.ready_at <= ? limit ?
            )
            union all
            (
                select 1 as one from leasehold_ready r force index (primary)
                where r.queue_id = ? and r.tier = 3 and r.ready_at > ? and r.ready_at <= ? limit ?
            )
            union all
            (
                select 1 as one from leasehold_ready r force index (primary)
                where r.queue_id = ? and r.tier = 4 and r.ready_at > ? and r.ready_at <= ? limit ?
            )
            union all
            (
                select 1 as one from leasehold_ready r force index (primary)
                where r.queue_id = ? and r.tier = 5 and r.ready_at > ? and r.ready_at <= ? limit ?
            )
            union all
            (
                select 1 as one from leasehold_ready r force index (primary)
                where r.queue_id = ? and r.tier = 6 and r.ready_at > ? and r.ready_at <= ? limit ?
            )
            union all
            (
                select 1 as one from leasehold_ready r force index (primary)
                where r.queue_id = ? and r.tier = 7 and r.ready_at > ? and r.ready_at <= ? limit ?
            )
            union all
            (
                select 1 as one from leasehold_ready r force index (primary)
                where r.queue_id = ? and r.tier = 8 and r.ready_at > ? and r.ready_at <= ? limit ?
            )
            union all
            (
                select 1 as one from leasehold_ready r force index (primary)
                where r.queue_id = ? and r.tier = 9 and r.ready_at > ? and r.ready_at <= ? limit ?
            )
        ) waiting
    ) as ready,
    (
        select min(waiting.ready_at) from (
            (
                select r.ready_at from leasehold_ready r force index (primary)
                where r.queue_id = ? and r.tier = 0 and r.ready_at > ? and r.ready_at <= ?
                order by r.ready_at limit 1
            )
            union all
            (
                select r.ready_at from leasehold_ready r force index (primary)
                where r.queue_id = ? and r.tier = 1 and r.ready_at > ? and r.ready_at <= ?
                order by r.ready_at limit 1
            )
            union all
            (
                select r.ready_at from leasehold_ready r force index (primary)
                where r.queue_id = ? and r.tier = 2 and r.ready_at > ? and r.ready_at <= ?
                order by r.ready_at limit 1
            )
            union all
            (
                select r.ready_at from leasehold_ready r force index (primary)
                where r.queue_id = ? and r.tier = 3 and r.ready_at > ? and r.ready_at <= ?
                order by r.ready_at limit 1
            )
            union all
            (
                select r.ready_at from leasehold_ready r force index (primary)
                where r.queue_id = ? and r.tier = 4 and r.ready_at > ? and r.ready_at <= ?
                order by r.ready_at limit 1
            )
            union all
            (
                select r.ready_at from leasehold_ready r force index (primary)
                where r.queue_id = ? and r.tier = 5 and r.ready_at > ? and r.ready_at <= ?
                order by r.ready_at limit 1
            )
            union all
            (
                select r.ready_at from leasehold_ready r force index (primary)
                where r.queue_id = ? and r.tier = 6 and r.ready_at > ? and r.ready_at <= ?
                order by r.ready_at limit 1
            )
            union all
            (
                select r.ready_at from leasehold_ready r force index (primary)
                where r.queue_id = ? and r.tier = 7 and r.ready_at > ? and r.ready_at <= ?
                order by r.ready_at limit 1
            )
            union all
            (
                select r.ready_at from leasehold_ready r force index (primary)
                where r.queue_id = ? and r.tier = 8 and r.ready_at > ? and r.ready_at <= ?
                order by r.ready_at limit 1
            )
            union all
            (
                select r.ready_at from leasehold_ready r force index (primary)
                where r.queue_id = ? and r.tier = 9 and r.ready_at > ? and r.ready_at <= ?
                order by r.ready_at limit 1
            )
        ) waiting
    ) as oldest,
    (
        select count(*) from (
            (
                select 1 as one from leasehold_ready r force index (primary)
                where r.queue_id = ? and r.tier = 0 and r.ready_at > ? limit ?
            )
            union all
            (
                select 1 as one from leasehold_ready r force index (primary)
                where r.queue_id = ? and r.tier = 1 and r.ready_at > ? limit ?
            )
            union all
            (
                select 1 as one from leasehold_ready r force index (primary)
                where r.queue_id = ? and r.tier = 2 and r.ready_at > ? limit ?
            )
            union all
            (
                select 1 as one from leasehold_ready r force index (primary)
                where r.queue_id = ? and r.tier = 3 and r.ready_at > ? limit ?
            )
            union all
            (
                select 1 as one from leasehold_ready r force index (primary)
                where r.queue_id = ? and r.tier = 4 and r.ready_at > ? limit ?
            )
            union all
            (
                select 1 as one from leasehold_ready r force index (primary)
                where r.queue_id = ? and r.tier = 5 and r.ready_at > ? limit ?
            )
            union all
            (
                select 1 as one from leasehold_ready r force index (primary)
                where r.queue_id = ? and r.tier = 6 and r.ready_at > ? limit ?
            )
            union all
            (
                select 1 as one from leasehold_ready r force index (primary)
                where r.queue_id = ? and r.tier = 7 and r.ready_at > ? limit ?
            )
            union all
            (
                select 1 as one from leasehold_ready r force index (primary)
                where r.queue_id = ? and r.tier = 8 and r.ready_at > ? limit ?
            )
            union all
            (
                select 1 as one from leasehold_ready r force index (primary)
                where r.queue_id = ? and r.tier = 9 and r.ready_at > ? limit ?
            )
        ) waiting
    ) as scheduled,
    (
        select count(*) from (
            select 1 as one from leasehold_blocked b force index (primary) where b.queue_id = ? limit ?
        ) waiting
    ) as blocked,
    (
        select count(*) from (
            select 1 as one
            from leasehold_lease l force index (lease_queue)
            where l.queue_id = ? and l.lease_until > ?
            limit ?
        ) waiting
    ) as leased,
    (
        select count(*) from (
            select 1 as one from leasehold_dead_job d force index (dead_job_queue) where d.queue_id = ? limit ?
        ) waiting
    ) as dead
