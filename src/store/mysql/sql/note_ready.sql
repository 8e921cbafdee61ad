-- ? [job, …], ? now, all of them locked by this transaction and made ready by unblock.sql
update json_table(?, '$[*]' columns (id bigint path '$')) v
straight_join leasehold_job j force index (primary) on j.id = v.id
set j.ready_at = greatest(j.available_at, ?)
