-- ?1 queue, ?2 and ?3 dead_at and id to come after, ?4 limit
select id, dead_at, enqueued_at from dead_job indexed by dead_job_queue
where queue_id = ?1 and (dead_at, id) > (?2, ?3)
order by dead_at, id limit ?4
