-- Undoes the grants of leases $1, whose jobs nobody knows: by a walk over all leases, expired or not, which is what the bound
-- on the time is for.
with taken as materialized (
    select j.id
    from leasehold.job j
    where j.lease_id is not null and j.lease_until > '-infinity' and j.lease_id = any ($1::uuid[])
    for update skip locked
),
undone as (
    update leasehold.job j
    set lease_id = null, lease_until = null, lease_duration = null, attempt = greatest(j.attempt - 1, 0),
        ready_at = greatest(j.available_at, clock_timestamp())
    where j.id = any (array(select t.id from taken t))
    returning j.queue_id
)
select coalesce(array_agg(distinct u.queue_id), '{}') as queues from undone u
