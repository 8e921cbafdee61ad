-- ?1 queue, ?2 id to come after, ?3 limit
select id, enqueued_at from acked_job indexed by acked_job_queue
where queue_id = ?1 and id > ?2
order by id limit ?3
