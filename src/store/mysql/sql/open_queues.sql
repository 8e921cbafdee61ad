-- ? [queue, …], each once
-- How many of them take jobs.
select count(*) as open
from json_table(?, '$[*]' columns (id int path '$')) v
straight_join leasehold_queue q force index (primary) on q.id = v.id
where q.disabled_reason is null and q.closing_since is null
