-- Which of the leases $2 of jobs $1 hold, and until when.
select array_agg(coalesce(j.lease_id = u.lease, false) order by u.n) as holds,
    array_agg(j.lease_until order by u.n) as untils,
    array_agg(coalesce(j.cancel_requested, false) order by u.n) as cancels,
    clock_timestamp() as looked_at
from unnest($1::bigint[], $2::uuid[]) with ordinality u (id, lease, n)
left join lateral (
    select j.lease_id, j.lease_until, j.cancel_requested from leasehold.job j where j.id = u.id offset 0
) j on true
