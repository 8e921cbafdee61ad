-- ? [[queue, ordering key in hexadecimal, position], …]
delete b
from json_table(?, '$[*]' columns (
    queue_id int path '$[0]', ordering_key varchar(400) path '$[1]', position bigint path '$[2]'
)) v
straight_join leasehold_blocked b force index (primary)
    on b.queue_id = v.queue_id and b.ordering_key = unhex(v.ordering_key) and b.position = v.position
