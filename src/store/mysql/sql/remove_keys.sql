-- ? [[queue, key in hexadecimal], …], all of them locked by this transaction
delete k
from json_table(?, '$[*]' columns (queue_id int path '$[0]', name varchar(400) path '$[1]')) v
straight_join leasehold_idempotency_key k force index (primary) on k.queue_id = v.queue_id and k.name = unhex(v.name)
