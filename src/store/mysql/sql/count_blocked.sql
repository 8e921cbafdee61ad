-- ? enqueued before, ? queue, ? how many
select count(*) as walked, cast(coalesce(sum(w.enqueued_at < ?), 0) as signed) as found
from (
    select j.enqueued_at
    from leasehold_blocked b force index (primary)
    straight_join leasehold_job j force index (primary) on j.id = b.id
    where b.queue_id = ?
    limit ?
) w
