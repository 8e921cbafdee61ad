-- ? [job, …]
-- Those of them that are dead, of queues that are there and not being deleted.
select d.id
from json_table(?, '$[*]' columns (id bigint path '$')) v
straight_join leasehold_dead_job d force index (primary) on d.id = v.id
straight_join leasehold_queue q force index (primary) on q.id = d.queue_id
where q.closing_since is null
