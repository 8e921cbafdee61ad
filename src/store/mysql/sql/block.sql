-- ? [[job, queue, ordering key in hexadecimal], …]
insert into leasehold_blocked (queue_id, ordering_key, position, id, attempt, lease_number)
select v.queue_id, unhex(v.ordering_key), v.id, v.id, 0, 0
from json_table(?, '$[*]' columns (
    id bigint path '$[0]', queue_id int path '$[1]', ordering_key varchar(400) path '$[2]'
)) v
