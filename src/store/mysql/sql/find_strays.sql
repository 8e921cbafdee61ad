-- ? [[place, queue, ordering key in hexadecimal], …]
-- Jobs of these keys that a service left when their queue did not exist yet.
select v.n, a.job_id
from json_table(?, '$[*]' columns (
    n int path '$[0]', queue_id int path '$[1]', ordering_key varchar(400) path '$[2]'
)) v
straight_join leasehold_queue q force index (primary) on q.id = v.queue_id
straight_join leasehold_arrival a force index (arrival_named) on a.queue_name = q.name and a.ordering_key = unhex(v.ordering_key)
