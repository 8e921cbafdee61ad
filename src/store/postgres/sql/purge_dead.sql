-- A step of purging queue $1 of its dead jobs, enqueued before $2 (now where null), behind $3 and $4, $5 rows at most. See
-- leasehold.purge_dead.
select p.removed, p.walked, p.last_at, p.last_id, b.before
from (select coalesce($2::timestamptz, clock_timestamp()) as before offset 0) b
cross join lateral leasehold.purge_dead($1::int, b.before, $3::timestamptz, $4::bigint, $5::int) p
