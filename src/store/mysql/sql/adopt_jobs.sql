-- ? [job, …] in their order
-- Those of them that are still there, locked; waits for those who take one away.
select j.id, j.queue_id, j.priority, j.available_at,
    timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6)) as now
from json_table(?, '$[*]' columns (id bigint path '$')) v
straight_join leasehold_job j force index (primary) on j.id = v.id
for update /*!80001 of j */
