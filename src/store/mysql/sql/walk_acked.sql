-- ? queue, ? job to come behind, ? how many
-- Acked jobs that are kept.
select a.id, a.enqueued_at
from leasehold_acked_job a force index (acked_job_queue)
where a.queue_id = ? and a.id > ?
order by a.id
limit ?
