-- ? queue, ? ordering key, ? position to come behind, ? how many
-- Blocked jobs of a key.
select b.id, b.ordering_key, b.position, j.enqueued_at
from leasehold_blocked b force index (primary)
straight_join leasehold_job j force index (primary) on j.id = b.id
where b.queue_id = ? and b.ordering_key = ? and b.position > ?
order by b.position
limit ?
