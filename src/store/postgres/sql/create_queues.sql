-- Brings queues named $1 into being, with settings $2 to $13, all or none: there may be $14 queues. Others may do the same at
-- this moment: look again afterwards.
-- Those that exist are left out before, since a conflict would use up a number.
insert into leasehold.queue (
    name, paused, disabled_reason, lease_duration, max_attempts, backoff_base, backoff_cap, idempotency_retention,
    dead_retention, max_backlog_jobs, max_backlog_bytes, time_to_live, acked_retention
)
select u.name, $2::boolean, $3::text, $4::bigint, $5::int, $6::bigint, $7::bigint, $8::bigint, $9::bigint, $10::bigint,
    $11::bigint, $12::bigint, $13::bigint
from unnest($1::text[]) u (name)
where (select q.id from leasehold.queue q where q.name = u.name) is null
    and cardinality($1::text[]) + (
        select count(*) from (select q.id from leasehold.queue q where q.id > 0 limit $14::bigint) c
    ) <= $14::bigint
group by u.name
order by u.name collate "C"
on conflict (name) do nothing
