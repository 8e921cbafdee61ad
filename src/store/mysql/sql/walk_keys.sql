-- ? queue, ? ordering key to come behind, ? how many
-- Blocked jobs, key by key.
select b.id, b.ordering_key, b.position, j.enqueued_at
from leasehold_blocked b force index (primary)
straight_join leasehold_job j force index (primary) on j.id = b.id
where b.queue_id = ? and b.ordering_key > ?
order by b.ordering_key, b.position
limit ?
