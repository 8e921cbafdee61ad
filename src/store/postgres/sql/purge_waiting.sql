-- A step of purging queue $1 of its ready ($2) or scheduled jobs, enqueued before $3 (now where null), behind $4 and $5, $6
-- rows at most. See leasehold.purge_waiting.
select p.removed, p.readied, p.walked, p.last_at, p.last_id, b.before
from (select coalesce($3::timestamptz, clock_timestamp()) as before offset 0) b
cross join lateral leasehold.purge_waiting($1::int, $2::boolean, b.before, $4::timestamptz, $5::bigint, $6::int) p
