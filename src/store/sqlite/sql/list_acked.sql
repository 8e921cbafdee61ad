-- ?1 to ?8 as in list_dead_by_id.sql
-- Acked jobs that are kept, in the order of ids. next_id: as in list_jobs.sql.
with walked as materialized (
    select id, row_number() over (order by id) as n, fits, bytes from (
        select
            id, (?3 is null or ordering_key is ?3) and (?4 is null or caller is ?4) as fits,
            iif(?8, length(payload), 0) + coalesce(length(headers), 0) + coalesce(length(last_error), 0) as bytes
        from acked_job where queue_id = ?1 and id > ?2 order by id limit ?5
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
    acked_job.id, acked_job.queue_id, (select name from queue where queue.id = acked_job.queue_id) as queue_name, 6 as state,
    iif(?8, acked_job.payload, null) as payload, length(acked_job.payload) as payload_bytes, acked_job.content_type, acked_job.headers,
    acked_job.priority, acked_job.attempt, acked_job.max_attempts, acked_job.lease_number, acked_job.enqueued_at,
    acked_job.available_at, null as ready_at, null as lease_until, null as lease_stream, 0 as cancel_requested,
    acked_job.ordering_key, acked_job.idempotency_key, acked_job.last_error, null as dead_at, acked_job.expires_at,
    acked_job.acked_at, acked_job.traceparent, acked_job.tracestate, acked_job.caller
from stop
left join picked on true
left join acked_job on acked_job.id = picked.id
order by picked.n
