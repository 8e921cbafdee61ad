-- ? enqueued before, ? queue, ? how many
select count(*) as walked, cast(coalesce(sum(w.enqueued_at < ?), 0) as signed) as found
from (
    select a.enqueued_at from leasehold_acked_job a force index (acked_job_queue) where a.queue_id = ? limit ?
) w
