-- ? [queue's name in hexadecimal, …], ? replica
delete d
from json_table(?, '$[*]' columns (name varchar(256) path '$')) v
straight_join leasehold_replica_demand d force index (primary) on d.replica = ? and d.queue_name = unhex(v.name)
