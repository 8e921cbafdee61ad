-- ? [[job, ready_at, whether the error stays, [error] or []], …], all of them locked by this transaction
update json_table(?, '$[*]' columns (
    id bigint path '$[0]', ready_at bigint path '$[1]', stays int path '$[2]',
    error mediumtext character set utf8mb4 path '$[3][0]'
)) v
straight_join leasehold_job j force index (primary) on j.id = v.id
set j.ready_at = v.ready_at, j.last_error = if(v.stays, j.last_error, v.error)
