-- ? enqueued before, ? queue, ? how many
select count(*) as walked, cast(coalesce(sum(w.enqueued_at < ?), 0) as signed) as found
from (
    select d.enqueued_at from leasehold_dead_job d force index (dead_job_queue) where d.queue_id = ? limit ?
) w
