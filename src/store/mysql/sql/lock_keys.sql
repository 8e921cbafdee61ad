-- ? head of those that are new, ? [[queue, ordering key in hexadecimal], …] in the order of keys
-- Takes the keys, waiting for others who do.
insert into leasehold_ordering_key (queue_id, ordering_key, head)
select v.queue_id, unhex(v.ordering_key), ?
from json_table(?, '$[*]' columns (queue_id int path '$[0]', ordering_key varchar(400) path '$[1]')) v
on duplicate key update head = leasehold_ordering_key.head
