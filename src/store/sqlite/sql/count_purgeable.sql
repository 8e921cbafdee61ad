-- ?1 queue, ?2 to ?6 whether ready, scheduled, blocked, dead and acked ones are asked for, ?7 enqueued before, ?8 now, ?9 rows
-- of an index at most for each of them
select count(*) as walked, count(*) filter (where enqueued_at < ?7) as found from (
    select enqueued_at from json_each('[0,1,2,3,4,5,6,7,8,9]') level
    cross join job indexed by job_ready
        on ?2 and job.queue_id = ?1 and job.priority = level.value and job.lease_id is null and job.blocked = 0
        and job.ready_at <= ?8
    limit ?9
)
union all
select count(*), count(*) filter (where enqueued_at < ?7) from (
    select enqueued_at from json_each('[0,1,2,3,4,5,6,7,8,9]') level
    cross join job indexed by job_ready
        on ?3 and job.queue_id = ?1 and job.priority = level.value and job.lease_id is null and job.blocked = 0
        and job.ready_at > ?8
    limit ?9
)
union all
select count(*), count(*) filter (where enqueued_at < ?7) from (
    select enqueued_at from job indexed by job_blocked where ?4 and queue_id = ?1 and blocked = 1 limit ?9
)
union all
select count(*), count(*) filter (where enqueued_at < ?7) from (
    select enqueued_at from dead_job indexed by dead_job_queue where ?5 and queue_id = ?1 limit ?9
)
union all
select count(*), count(*) filter (where enqueued_at < ?7) from (
    select enqueued_at from acked_job indexed by acked_job_queue where ?6 and queue_id = ?1 limit ?9
)
