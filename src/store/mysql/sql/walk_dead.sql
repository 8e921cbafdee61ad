-- ? queue, ? and again ? dead_at and ? job to come behind, ? how many
-- Dead jobs, those that died first first.
select d.id, d.dead_at, d.enqueued_at
from leasehold_dead_job d force index (dead_job_queue)
where d.queue_id = ? and d.dead_at >= ? and (d.dead_at > ? or d.id > ?)
order by d.dead_at, d.id
limit ?
