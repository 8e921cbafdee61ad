-- ?1 [name, …], none of which exists, ?2 to ?9 settings as named, ?10 queues that there may be
insert into queue (
    name, lease_duration, max_attempts, backoff_base, backoff_cap, idempotency_retention, dead_retention,
    max_backlog_jobs, max_backlog_bytes
)
select value, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9 from json_each(?1)
where json_array_length(?1) + (select count(*) from (select 1 from queue where id > 0 limit ?10)) <= ?10
on conflict (name) do nothing
