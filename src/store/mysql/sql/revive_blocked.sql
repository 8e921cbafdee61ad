-- ? [[job, place in its ordering key], …], as in revive.sql
-- Those with ordering keys, behind all that are there.
insert into leasehold_blocked (queue_id, ordering_key, position, id, attempt, lease_number)
select d.queue_id, d.ordering_key, v.position, d.id, 0, d.lease_number
from json_table(?, '$[*]' columns (id bigint path '$[0]', position bigint path '$[1]')) v
straight_join leasehold_dead_job d force index (primary) on d.id = v.id
where d.ordering_key is not null
