-- ? now, ? [[job, queue, ordering key in hexadecimal, empty where it has none], …]
-- (Early versions of MySQL 8 read a null of JSON as a text.)
insert into leasehold_arrival (stored_at, job_id, queue_id, ordering_key)
select ?, v.id, v.queue_id, nullif(unhex(v.ordering_key), '')
from json_table(?, '$[*]' columns (
    id bigint path '$[0]', queue_id int path '$[1]', ordering_key varchar(400) path '$[2]'
)) v
