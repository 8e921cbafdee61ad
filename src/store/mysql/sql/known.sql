-- ? [[place, queue, key in hexadecimal], …], all of them locked by this transaction
select v.n, k.job_id, k.content
from json_table(?, '$[*]' columns (n int path '$[0]', queue_id int path '$[1]', name varchar(400) path '$[2]')) v
straight_join leasehold_idempotency_key k force index (primary) on k.queue_id = v.queue_id and k.name = unhex(v.name)
