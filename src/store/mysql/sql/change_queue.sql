-- ? to ? settings as named, ? queue, ? version
update leasehold_queue
set paused = ?, disabled_reason = ?, lease_duration = ?, max_attempts = ?, backoff_base = ?, backoff_cap = ?,
    idempotency_retention = ?, dead_retention = ?, max_backlog_jobs = ?, max_backlog_bytes = ?, time_to_live = ?,
    acked_retention = ?, version = version + 1
where id = ? and version = ? and closing_since is null
