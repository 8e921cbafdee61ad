-- ? [[place, queue, ordering key in hexadecimal], …], all of them locked by this transaction
-- Each one's head, whether that job is still there, and the first one that waits behind it.
select v.n, o.head, (
        select j.id from leasehold_job j where j.id = o.head limit 1
    ) as live, (
        select b.position
        from leasehold_blocked b force index (primary)
        where b.queue_id = o.queue_id and b.ordering_key = o.ordering_key
        order by b.position
        limit 1
    ) as next, (
        select b.id
        from leasehold_blocked b force index (primary)
        where b.queue_id = o.queue_id and b.ordering_key = o.ordering_key
        order by b.position
        limit 1
    ) as next_id,
    timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6)) as now
from json_table(?, '$[*]' columns (
    n int path '$[0]', queue_id int path '$[1]', ordering_key varchar(400) path '$[2]'
)) v
straight_join leasehold_ordering_key o force index (primary)
    on o.queue_id = v.queue_id and o.ordering_key = unhex(v.ordering_key)
