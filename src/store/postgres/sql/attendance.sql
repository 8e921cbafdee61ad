-- What replicas seen within the last $2 microseconds wrote about the queues named $1, summed, in the order of the names.
with present as materialized (
    select p.id
    from leasehold.replica p
    where p.id >= 0 and p.seen_at > now() - $2::bigint * interval '1 microsecond'
)
select coalesce(sum(d.streams), 0)::bigint as streams, coalesce(sum(d.free_credit), 0)::bigint as free_credit,
    coalesce(sum(r.enqueued), 0) as enqueued, coalesce(sum(r.leased), 0) as leased, coalesce(sum(r.acked), 0) as acked,
    coalesce(sum(r.retried), 0) as retried, coalesce(sum(r.expired), 0) as expired, coalesce(sum(r.dead), 0) as dead
from unnest($1::text[]) with ordinality u (name, n)
left join lateral (select q.id from leasehold.queue q where q.name = u.name offset 0) q on true
left join present p on true
left join lateral (
    select d.streams, d.free_credit from leasehold.replica_demand d where d.replica = p.id and d.queue_name = u.name offset 0
) d on true
left join lateral (
    select r.enqueued, r.leased, r.acked, r.retried, r.expired, r.dead
    from leasehold.replica_rate r
    where r.replica = p.id and r.queue_id = q.id
    offset 0
) r on true
group by u.n
order by u.n
