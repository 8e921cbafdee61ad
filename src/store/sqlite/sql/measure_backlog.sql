-- ?1 queue, ?2 jobs at most
-- Live jobs and their payload bytes: those that wait, those under a lease, those blocked. Each arm walks an index of its own
-- and stops with the count.
select count(*) as jobs, coalesce(sum(bytes), 0) as bytes from (
    select length(payload) as bytes from job indexed by job_ready
    where queue_id = ?1 and lease_id is null and blocked = 0
    union all
    select length(payload) from job indexed by job_leased
    where queue_id = ?1 and lease_id is not null
    union all
    select length(payload) from job indexed by job_blocked
    where queue_id = ?1 and blocked = 1
    limit ?2
)
