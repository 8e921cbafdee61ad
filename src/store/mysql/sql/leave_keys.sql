-- ? [[queue, ordering key in hexadecimal], …]
delete o
from json_table(?, '$[*]' columns (queue_id int path '$[0]', ordering_key varchar(400) path '$[1]')) v
straight_join leasehold_ordering_key o force index (primary) on o.queue_id = v.queue_id and o.ordering_key = unhex(v.ordering_key)
