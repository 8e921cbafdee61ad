-- Buries jobs past the time to live of queues $1, from floors $2 on, $3 at most. See leasehold.expire_ready_jobs.
select e.dead, e.readied, e.next_floors from leasehold.expire_ready_jobs($1::int[], $2::timestamptz[], $3::int) e
