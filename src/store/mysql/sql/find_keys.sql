-- ? [job, …]
-- The ordering keys of those that have one.
select j.queue_id, j.ordering_key
from json_table(?, '$[*]' columns (id bigint path '$')) v
straight_join leasehold_job j force index (primary) on j.id = v.id
where j.ordering_key is not null and j.queue_id <> 0
