-- ? queue, ? how many
-- Ordering keys of a queue whose jobs are gone.
select o.queue_id, o.ordering_key
from leasehold_ordering_key o force index (primary)
where o.queue_id = ?
    and (
        select b.position
        from leasehold_blocked b
        where b.queue_id = o.queue_id and b.ordering_key = o.ordering_key
        limit 1
    ) is null
    and (select j.id from leasehold_job j where j.id = o.head limit 1) is null
limit ?
