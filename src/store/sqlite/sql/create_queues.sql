-- ?1 to ?12 settings as named, ?13 [name, …], none of which exists, ?14 queues that there may be
insert into queue (
    name, paused, disabled_reason, lease_duration, max_attempts, backoff_base, backoff_cap, idempotency_retention,
    dead_retention, max_backlog_jobs, max_backlog_bytes, time_to_live, acked_retention
)
select value, ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12 from json_each(?13)
where json_array_length(?13) + (select count(*) from (select 1 from queue where id > 0 limit ?14)) <= ?14
on conflict (name) do nothing
