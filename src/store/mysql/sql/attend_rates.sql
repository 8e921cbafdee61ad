-- ? replica, ? [[queue, enqueued, leased, acked, retried, expired, dead], …]
insert into leasehold_replica_rate (replica, queue_id, enqueued, leased, acked, retried, expired, dead)
select ?, v.queue_id, v.enqueued, v.leased, v.acked, v.retried, v.expired, v.dead
from json_table(?, '$[*]' columns (
    queue_id int path '$[0]', enqueued double path '$[1]', leased double path '$[2]', acked double path '$[3]',
    retried double path '$[4]', expired double path '$[5]', dead double path '$[6]'
)) v
on duplicate key update
    enqueued = values(enqueued), leased = values(leased), acked = values(acked), retried = values(retried),
    expired = values(expired), dead = values(dead)
