-- ? replica, ? not seen since then
-- Others that are gone.
select p.id
from leasehold_replica p force index (primary)
where p.id >= 0 and p.id <> ? and p.seen_at < ?
limit 10
