-- ? [queue, …], ? replica
delete r
from json_table(?, '$[*]' columns (queue_id int path '$')) v
straight_join leasehold_replica_rate r force index (primary) on r.replica = ? and r.queue_id = v.queue_id
