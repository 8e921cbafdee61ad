-- ? [[queue, ordering key in hexadecimal, position], …], the jobs locked by this transaction
-- Those of them that are blocked, locked.
select b.id
from json_table(?, '$[*]' columns (
    queue_id int path '$[0]', ordering_key varchar(400) path '$[1]', position bigint path '$[2]'
)) v
straight_join leasehold_blocked b force index (primary)
    on b.queue_id = v.queue_id and b.ordering_key = unhex(v.ordering_key) and b.position = v.position
for update /*!80001 of b */
