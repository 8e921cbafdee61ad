-- ?1 to ?12 settings as named, ?13 queue, ?14 version
update queue set
    paused = ?1, disabled_reason = ?2, lease_duration = ?3, max_attempts = ?4, backoff_base = ?5, backoff_cap = ?6,
    idempotency_retention = ?7, dead_retention = ?8, max_backlog_jobs = ?9, max_backlog_bytes = ?10, time_to_live = ?11,
    acked_retention = ?12, version = version + 1
where id = ?13 and version = ?14 and closing_since is null
returning
    id, name, paused, disabled_reason, lease_duration, max_attempts, backoff_base, backoff_cap, idempotency_retention,
    dead_retention, max_backlog_jobs, max_backlog_bytes, time_to_live, acked_retention, version,
    closing_since is not null as closing
