-- ? enqueued before, ? queue, ? tier, ? and ? ready later than the first, no later than the second, ? how many
select count(*) as walked, cast(coalesce(sum(w.enqueued_at < ?), 0) as signed) as found
from (
    select j.enqueued_at
    from leasehold_ready r force index (primary)
    straight_join leasehold_job j force index (primary) on j.id = r.id
    where r.queue_id = ? and r.tier = ? and r.ready_at > ? and r.ready_at <= ?
    limit ?
) w
