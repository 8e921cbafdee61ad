-- The first waiting job of each queue in $1 and each priority, ready or scheduled; $2 has ten floors for each queue.
select u.queue_id, level::smallint as priority, w.ready_at, clock_timestamp() as looked_at
from unnest($1::int[]) with ordinality u (queue_id, n)
cross join generate_series(9, 0, -1) level
cross join lateral (
    select j.ready_at
    from leasehold.job j
    where j.queue_id = u.queue_id
        and j.priority = level
        and j.lease_id is null
        and not j.blocked
        and j.ready_at > ($2::timestamptz[])[(u.n - 1) * 10 + level + 1]
    order by j.ready_at, j.id
    limit 1
) w
