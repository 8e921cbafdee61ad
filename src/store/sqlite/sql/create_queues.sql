-- ?1 [name, …], ?2 to ?9 settings as named
insert into queue (
    name, lease_duration, max_attempts, backoff_base, backoff_cap, idempotency_retention, dead_retention,
    max_backlog_jobs, max_backlog_bytes
)
select value, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9 from json_each(?1) where true
on conflict (name) do nothing
