-- Removes idempotency keys whose retention ended after $1, $2 at most. See leasehold.prune_idempotency_keys.
select p.removed, p.next_floor from leasehold.prune_idempotency_keys($1::timestamptz, $2::int) p
