-- ? [job, …], all of them locked by this transaction
-- Their leases, and how their queues treat those that end.
select l.job_id, l.token, l.lease_until, l.duration, l.attempt, l.lease_number, l.stream, q.backoff_base, q.backoff_cap,
    q.acked_retention is not null as kept,
    timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6)) as now
from json_table(?, '$[*]' columns (id bigint path '$')) v
straight_join leasehold_lease l force index (primary) on l.job_id = v.id
straight_join leasehold_queue q force index (primary) on q.id = l.queue_id
