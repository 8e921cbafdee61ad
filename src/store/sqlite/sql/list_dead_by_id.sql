-- ?1 queue, ?2 behind this job, ?3 ordering key or null, ?4 caller or null, ?5 rows to look at, ?6 rows to bring, ?7 bytes to
-- bring, ?8 with payloads
-- Dead jobs in the order of ids. next_id: as in list_jobs.sql.
with walked as materialized (
    select id, row_number() over (order by id) as n, fits, bytes from (
        select
            id, queue_id = ?1 and (?3 is null or ordering_key is ?3) and (?4 is null or caller is ?4) as fits,
            iif(?8, length(payload), 0) + coalesce(length(headers), 0) + coalesce(length(last_error), 0) as bytes
        from dead_job where id > ?2 order by id limit ?5
    )
),
picked as (
    select id, n from (
        select id, n, sum(bytes) over (order by n) - bytes as before from walked where fits order by n limit ?6
    )
    where before <= ?7
),
stop as (
    select case
        when (select count(*) from picked) < (select count(*) from walked where fits) then (select max(n) from picked)
        when (select count(*) from walked) >= ?5 then ?5
    end as n
)
select
    (select id from walked where n = stop.n) as next_id,
    dead_job.id, dead_job.queue_id, (select name from queue where queue.id = dead_job.queue_id) as queue_name, 5 as state,
    iif(?8, dead_job.payload, null) as payload, length(dead_job.payload) as payload_bytes, dead_job.content_type, dead_job.headers, dead_job.priority,
    dead_job.attempt, dead_job.max_attempts, dead_job.lease_number, dead_job.enqueued_at, dead_job.available_at,
    null as ready_at, null as lease_until, null as lease_stream, 0 as cancel_requested, dead_job.ordering_key,
    dead_job.idempotency_key, dead_job.last_error, dead_job.dead_at, dead_job.expires_at, null as acked_at,
    dead_job.traceparent, dead_job.tracestate, dead_job.caller
from stop
left join picked on true
left join dead_job on dead_job.id = picked.id
order by picked.n
