-- ?1 queue, ?2 floors [level 0, …, level 9], ?3 now, ?4 rows of an index at most for each count, ?5 floor of leases
select
    (
        select count(*) from (
            select 1 from json_each(?2) floor
            cross join job indexed by job_ready
                on job.queue_id = ?1 and job.priority = floor.key and job.lease_id is null and job.blocked = 0
                and job.ready_at > floor.value and job.ready_at <= ?3
            limit ?4
        )
    ) as ready,
    (
        select min(first) from (
            select (
                select min(ready_at) from job
                where queue_id = ?1 and priority = floor.key and lease_id is null and blocked = 0
                    and ready_at > floor.value and ready_at <= ?3
            ) as first
            from json_each(?2) floor
        )
    ) as oldest,
    (
        select count(*) from (
            select 1 from json_each(?2) floor
            cross join job indexed by job_ready
                on job.queue_id = ?1 and job.priority = floor.key and job.lease_id is null and job.blocked = 0
                and job.ready_at > ?3
            limit ?4
        )
    ) as scheduled,
    (
        select count(*) from (
            select 1 from job indexed by job_blocked where queue_id = ?1 and blocked = 1 limit ?4
        )
    ) as blocked,
    (
        select count(*) from (
            select 1 from job indexed by job_leased
            where queue_id = ?1 and lease_id is not null and lease_until > ?5
            limit ?4
        )
    ) as leased,
    (
        select count(*) from (
            select 1 from dead_job indexed by dead_job_queue where queue_id = ?1 limit ?4
        )
    ) as dead
