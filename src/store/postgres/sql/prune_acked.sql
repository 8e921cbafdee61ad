-- Removes acked jobs whose retention ended after $1, $2 at most. See leasehold.prune_acked_jobs.
select p.removed, p.next_floor from leasehold.prune_acked_jobs($1::timestamptz, $2::int) p
