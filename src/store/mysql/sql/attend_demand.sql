-- ? replica, ? [[queue's name in hexadecimal, streams, free credit], …]
insert into leasehold_replica_demand (replica, queue_name, streams, free_credit)
select ?, unhex(v.name), v.streams, v.free_credit
from json_table(?, '$[*]' columns (
    name varchar(256) path '$[0]', streams bigint path '$[1]', free_credit bigint path '$[2]'
)) v
on duplicate key update streams = values(streams), free_credit = values(free_credit)
