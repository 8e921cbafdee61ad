-- ? [[place, queue], …]
-- The times to live of those that have one.
select v.n, q.time_to_live
from json_table(?, '$[*]' columns (n int path '$[0]', id int path '$[1]')) v
straight_join leasehold_queue q force index (primary) on q.id = v.id
where q.time_to_live is not null
