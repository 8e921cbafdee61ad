-- Undoes grants $1 (jobs) with $2 (leases) that were never sent. Answers with the places in the arrays that were undone.
with taken as materialized (
    select u.n, j.id
    from unnest($1::bigint[], $2::uuid[]) with ordinality u (id, lease, n)
    join leasehold.job j on j.id = u.id and j.lease_id = u.lease
    for update of j skip locked
),
undone as (
    update leasehold.job j
    set lease_id = null, lease_until = null, lease_duration = null, attempt = greatest(j.attempt - 1, 0),
        ready_at = greatest(j.available_at, clock_timestamp())
    from taken t
    where j.id = t.id
    returning t.n
)
select coalesce(array_agg(u.n), '{}') as places from undone u
