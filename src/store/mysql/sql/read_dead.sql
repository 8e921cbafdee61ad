-- ? [job, …], all of them locked by this transaction
-- In the order in which they died.
select d.id, d.queue_id, d.ordering_key, d.dead_at
from json_table(?, '$[*]' columns (id bigint path '$')) v
straight_join leasehold_dead_job d force index (primary) on d.id = v.id
order by d.dead_at, d.id
