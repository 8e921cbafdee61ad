-- ? [job, …]
-- Those of them that nobody holds, locked. MySQL refuses to lock a list, and MariaDB knows no "of".
select j.id, j.queue_id, j.priority, j.max_attempts, j.cancel_requested, j.available_at, j.ready_at,
    coalesce(j.position, j.id) as position, j.ordering_key
from json_table(?, '$[*]' columns (id bigint path '$')) v
straight_join leasehold_job j force index (primary) on j.id = v.id
for update /*!80001 of j */ skip locked
