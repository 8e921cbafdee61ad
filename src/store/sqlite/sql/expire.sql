-- ?1 queue, ?2 floor, ?3 last ready_at, ?4 limit
-- Jobs that became ready before their time to live.
select job.id, job.ordering_key from json_each('[9,8,7,6,5,4,3,2,1,0]') level
cross join job indexed by job_ready
    on job.queue_id = ?1 and job.priority = level.value and job.lease_id is null and job.blocked = 0
    and job.ready_at > ?2 and job.ready_at <= ?3
limit ?4
