-- ? [[job, until], …], all of them locked by this transaction
update json_table(?, '$[*]' columns (id bigint path '$[0]', ends bigint path '$[1]')) v
straight_join leasehold_lease l force index (primary) on l.job_id = v.id
set l.lease_until = v.ends
