-- ? [job, …], all of them locked by this transaction
delete l
from json_table(?, '$[*]' columns (id bigint path '$')) v
straight_join leasehold_lease l force index (primary) on l.job_id = v.id
