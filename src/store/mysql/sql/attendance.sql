-- ? [[place, queue's name in hexadecimal], …], ? replicas not seen for so long are as if they were not
-- What they wrote about each queue, summed.
select v.n, cast(coalesce(sum(d.streams), 0) as signed) as streams,
    cast(coalesce(sum(d.free_credit), 0) as signed) as free_credit, coalesce(sum(r.enqueued), 0e0) as enqueued,
    coalesce(sum(r.leased), 0e0) as leased, coalesce(sum(r.acked), 0e0) as acked, coalesce(sum(r.retried), 0e0) as retried,
    coalesce(sum(r.expired), 0e0) as expired, coalesce(sum(r.dead), 0e0) as dead
from json_table(?, '$[*]' columns (n int path '$[0]', name varchar(256) path '$[1]')) v
left join leasehold_queue q force index (queue_name) on q.name = unhex(v.name)
left join leasehold_replica p force index (primary)
    on p.id >= 0 and p.seen_at > timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6)) - ?
left join leasehold_replica_demand d force index (primary) on d.replica = p.id and d.queue_name = unhex(v.name)
left join leasehold_replica_rate r force index (primary) on r.replica = p.id and r.queue_id = q.id
group by v.n
