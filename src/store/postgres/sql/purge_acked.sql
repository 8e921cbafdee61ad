-- A step of purging queue $1 of the acked jobs that it keeps, enqueued before $2 (now where null), behind $3, $4 rows at most.
-- See leasehold.purge_acked.
select p.removed, p.walked, p.last_id, b.before
from (select coalesce($2::timestamptz, clock_timestamp()) as before offset 0) b
cross join lateral leasehold.purge_acked($1::int, b.before, $3::bigint, $4::int) p
