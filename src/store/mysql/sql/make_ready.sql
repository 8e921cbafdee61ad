-- ? [[job, queue, tier, ready_at, attempt, lease number], …]
insert into leasehold_ready (queue_id, tier, ready_at, id, attempt, lease_number)
select v.queue_id, v.tier, v.ready_at, v.id, v.attempt, v.lease_number
from json_table(?, '$[*]' columns (
    id bigint path '$[0]', queue_id int path '$[1]', tier int path '$[2]', ready_at bigint path '$[3]',
    attempt int path '$[4]', lease_number bigint path '$[5]'
)) v
