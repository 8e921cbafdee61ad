-- ? now, ? [job, …], as in revive.sql
-- Those without ordering keys.
insert into leasehold_ready (queue_id, tier, ready_at, id, attempt, lease_number)
select d.queue_id, 9 - d.priority, greatest(d.available_at, ?), d.id, 0, d.lease_number
from json_table(?, '$[*]' columns (id bigint path '$')) v
straight_join leasehold_dead_job d force index (primary) on d.id = v.id
where d.ordering_key is null
