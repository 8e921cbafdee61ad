-- Gives queue $1 settings $3 to $14, where it still is of version $2 and not being deleted.
update leasehold.queue q
set paused = $3::boolean, disabled_reason = $4::text, lease_duration = $5::bigint, max_attempts = $6::int,
    backoff_base = $7::bigint, backoff_cap = $8::bigint, idempotency_retention = $9::bigint,
    dead_retention = $10::bigint, max_backlog_jobs = $11::bigint, max_backlog_bytes = $12::bigint,
    time_to_live = $13::bigint, acked_retention = $14::bigint, version = q.version + 1
where q.id = $1::int and q.version = $2::bigint and q.closing_since is null
returning q.id, q.name, q.paused, q.disabled_reason, q.lease_duration, q.max_attempts, q.backoff_base, q.backoff_cap,
    q.idempotency_retention, q.dead_retention, q.max_backlog_jobs, q.max_backlog_bytes, q.time_to_live, q.acked_retention,
    q.version, q.closing_since is not null as closing
