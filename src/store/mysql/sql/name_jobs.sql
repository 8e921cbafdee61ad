-- ? [[queue, key in hexadecimal, job], …]
update json_table(?, '$[*]' columns (
    queue_id int path '$[0]', name varchar(400) path '$[1]', job_id bigint path '$[2]'
)) v
straight_join leasehold_idempotency_key k force index (primary) on k.queue_id = v.queue_id and k.name = unhex(v.name)
set k.job_id = v.job_id
