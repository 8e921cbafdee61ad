-- ? [[queue, key in hexadecimal], …], ? now
-- Those of them that nobody holds and that are expired still, locked.
select k.queue_id, k.name
from json_table(?, '$[*]' columns (queue_id int path '$[0]', name varchar(400) path '$[1]')) v
straight_join leasehold_idempotency_key k force index (primary) on k.queue_id = v.queue_id and k.name = unhex(v.name)
where k.expires_at <= ?
for update /*!80001 of k */ skip locked
