-- ? to ? settings as named, ? [name, …] in hexadecimal, none of which exists
insert into leasehold_queue (
    name, paused, disabled_reason, lease_duration, max_attempts, backoff_base, backoff_cap, idempotency_retention,
    dead_retention, max_backlog_jobs, max_backlog_bytes, time_to_live, acked_retention
)
select unhex(v.name), ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?
from json_table(?, '$[*]' columns (name varchar(256) path '$')) v
