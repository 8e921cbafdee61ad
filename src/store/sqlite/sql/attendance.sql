-- ?1 [queue, …], ?2 replicas not seen since then are as if they were not
-- What they wrote about each, summed, in the order of the list.
select
    coalesce(sum(demand.streams), 0) as streams, coalesce(sum(demand.free_credit), 0) as free_credit,
    coalesce(sum(rate.enqueued), 0.0) as enqueued, coalesce(sum(rate.leased), 0.0) as leased,
    coalesce(sum(rate.acked), 0.0) as acked, coalesce(sum(rate.retried), 0.0) as retried,
    coalesce(sum(rate.expired), 0.0) as expired, coalesce(sum(rate.dead), 0.0) as dead
from json_each(?1) name
left join queue on queue.name = name.value
left join replica on replica.seen_at > ?2
left join replica_demand demand on demand.replica = replica.id and demand.queue_name = name.value
left join replica_rate rate on rate.replica = replica.id and rate.queue_id = queue.id
group by name.key
order by name.key
