-- ? queue, ? tier, ? and again ? ready_at and ? job to come behind, ? last ready_at, ? how many
-- Waiting jobs of a tier, the oldest first.
select r.id, r.ready_at, r.tier, j.enqueued_at
from leasehold_ready r force index (primary)
straight_join leasehold_job j force index (primary) on j.id = r.id
where r.queue_id = ? and r.tier = ? and r.ready_at >= ? and (r.ready_at > ? or r.id > ?) and r.ready_at <= ?
order by r.ready_at, r.id
limit ?
