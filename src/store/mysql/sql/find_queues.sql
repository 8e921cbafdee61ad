-- ? [name, …] in hexadecimal
select q.id, q.name, q.paused, q.disabled_reason, q.lease_duration, q.max_attempts, q.backoff_base, q.backoff_cap,
    q.idempotency_retention, q.dead_retention, q.max_backlog_jobs, q.max_backlog_bytes, q.time_to_live, q.acked_retention,
    q.version, q.closing_since is not null as closing
from json_table(?, '$[*]' columns (name varchar(256) path '$')) v
straight_join leasehold_queue q force index (queue_name) on q.name = unhex(v.name)
