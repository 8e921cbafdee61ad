-- Removes dead jobs whose retention ended after $1, $2 at most. See leasehold.prune_dead_jobs.
select p.removed, p.next_floor from leasehold.prune_dead_jobs($1::timestamptz, $2::int) p
