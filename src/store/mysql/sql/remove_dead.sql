-- ? [job, …], all of them locked by this transaction
delete d
from json_table(?, '$[*]' columns (id bigint path '$')) v
straight_join leasehold_dead_job d force index (primary) on d.id = v.id
