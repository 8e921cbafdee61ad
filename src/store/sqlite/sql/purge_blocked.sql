-- ?1 queue, ?2 and ?3 ordering key and position to come after, ?4 limit
select id, ordering_key, position, enqueued_at from job indexed by job_blocked
where queue_id = ?1 and blocked = 1 and (ordering_key, position) > (?2, ?3)
order by ordering_key, position limit ?4
