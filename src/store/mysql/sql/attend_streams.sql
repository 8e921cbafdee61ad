-- ? replica, ? [[stream, consumer, peer, caller, queues, max_in_flight, in_flight, [oldest lease at] or [], opened at], …]
insert into leasehold_replica_stream (
    id, replica, consumer, peer, caller, queues, max_in_flight, in_flight, oldest_lease_at, opened_at
)
select v.id, ?, v.consumer, v.peer, v.caller, v.queues, v.max_in_flight, v.in_flight, v.oldest_lease_at, v.opened_at
from json_table(?, '$[*]' columns (
    id bigint path '$[0]', consumer text character set utf8mb4 path '$[1]', peer text character set utf8mb4 path '$[2]',
    caller varchar(64) path '$[3]', queues mediumtext character set utf8mb4 path '$[4]',
    max_in_flight bigint path '$[5]', in_flight bigint path '$[6]', oldest_lease_at bigint path '$[7][0]',
    opened_at bigint path '$[8]'
)) v
on duplicate key update in_flight = values(in_flight), oldest_lease_at = values(oldest_lease_at)
