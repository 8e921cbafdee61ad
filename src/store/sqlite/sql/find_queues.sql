-- ?1 [name, …]
select
    id, name, paused, disabled_reason, lease_duration, max_attempts, backoff_base, backoff_cap, idempotency_retention,
    dead_retention, max_backlog_jobs, max_backlog_bytes, time_to_live, acked_retention, version,
    closing_since is not null as closing
from queue where name in (select value from json_each(?1))
