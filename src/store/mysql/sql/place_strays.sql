-- ? [[job, queue], …], all of them locked by this transaction
update json_table(?, '$[*]' columns (id bigint path '$[0]', queue_id int path '$[1]')) v
straight_join leasehold_job j force index (primary) on j.id = v.id
set j.queue_id = v.queue_id
