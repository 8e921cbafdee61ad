-- Removes reservations that ended after $1 and more than $2 microseconds ago, $3 at most. See leasehold.prune_reservations.
select p.removed, p.next_floor from leasehold.prune_reservations($1::timestamptz, $2::bigint, $3::int) p
