-- ?1 queue, ?2 level, ?3 and ?4 ready_at and id to come after, ?5 last ready_at, ?6 limit
select id, ready_at, ordering_key, enqueued_at from job indexed by job_ready
where queue_id = ?1 and priority = ?2 and lease_id is null and blocked = 0
    and (ready_at, id) > (?3, ?4) and ready_at <= ?5
order by ready_at, id limit ?6
