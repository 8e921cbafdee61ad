-- ? [job, …], all of them locked by this transaction
update json_table(?, '$[*]' columns (id bigint path '$')) v
straight_join leasehold_job j force index (primary) on j.id = v.id
set j.cancel_requested = true
