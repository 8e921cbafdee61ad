-- ? [job, …], all of them locked by this transaction
delete a
from json_table(?, '$[*]' columns (id bigint path '$')) v
straight_join leasehold_acked_job a force index (primary) on a.id = v.id
