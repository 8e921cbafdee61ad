-- ?1 prefix, ?2 name to come after, ?3 limit
-- No character of a name comes after ~.
select
    id, name, paused, disabled_reason, lease_duration, max_attempts, backoff_base, backoff_cap, idempotency_retention,
    dead_retention, max_backlog_jobs, max_backlog_bytes, time_to_live, acked_retention, version,
    closing_since is not null as closing
from queue
where name > ?2 and name >= ?1 and name < ?1 || '~'
order by name limit ?3
