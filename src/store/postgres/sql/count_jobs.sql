-- What is in each of queues $1, from floors $2 and $4 on, $3 rows of each state at most. See leasehold.count_jobs.
select c.ready, c.scheduled, c.blocked, c.leased, c.dead, c.oldest, c.counted_at
from leasehold.count_jobs($1::int[], $2::timestamptz[], $3::bigint, $4::timestamptz) c
