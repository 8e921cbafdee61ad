-- ? [[job, queue, ordering key in hexadecimal], …]
-- Their places in the line of their key move with them.
update json_table(?, '$[*]' columns (
    id bigint path '$[0]', queue_id int path '$[1]', ordering_key varchar(400) path '$[2]'
)) v
straight_join leasehold_blocked b force index (primary) on b.queue_id = 0 and b.ordering_key = unhex(v.ordering_key) and b.position = v.id
set b.queue_id = v.queue_id
