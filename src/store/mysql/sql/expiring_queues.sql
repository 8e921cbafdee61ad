-- ? number to come after, ? limit
select q.id
from leasehold_queue q force index (queue_time_to_live)
where q.time_to_live > 0 and q.id > ?
order by q.id
limit ?
