-- ? floor, ? how many
-- What services left and committed, locked.
select a.id, a.stored_at, a.job_id, a.queue_id, a.ordering_key, a.queue_name
from leasehold_arrival a force index (primary)
where a.id >= ?
order by a.id
limit ?
for update skip locked
