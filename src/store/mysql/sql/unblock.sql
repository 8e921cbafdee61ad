-- ? now, ? [[queue, ordering key in hexadecimal, position], …], all of them locked by this transaction
insert into leasehold_ready (queue_id, tier, ready_at, id, attempt, lease_number)
select b.queue_id, 9 - j.priority, greatest(j.available_at, ?), b.id, b.attempt, b.lease_number
from json_table(?, '$[*]' columns (
    queue_id int path '$[0]', ordering_key varchar(400) path '$[1]', position bigint path '$[2]'
)) v
straight_join leasehold_blocked b force index (primary)
    on b.queue_id = v.queue_id and b.ordering_key = unhex(v.ordering_key) and b.position = v.position
straight_join leasehold_job j force index (primary) on j.id = b.id
