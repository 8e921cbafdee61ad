-- ?1 [name, …]
select
    id, name, lease_duration, max_attempts, backoff_base, backoff_cap, idempotency_retention, dead_retention,
    max_backlog_jobs, max_backlog_bytes
from queue where name in (select value from json_each(?1))
