-- ? [job, …] in their order
-- Those of them that have no queue yet; waits for others who give them one.
select j.id, j.ordering_key
from json_table(?, '$[*]' columns (id bigint path '$')) v
straight_join leasehold_job j force index (primary) on j.id = v.id
where j.queue_id = 0
for update /*!80001 of j */
