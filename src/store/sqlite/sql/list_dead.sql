-- ?1 queue, ?2 and ?3 before the one that died at this instant with this id, ?4 died after, ?5 died before, ?6 part of the
-- error, ?7 ordering key, ?8 caller, each null where not asked for, ?9 rows to look at, ?10 rows to bring, ?11 bytes to bring,
-- ?12 with payloads
-- Dead jobs, the ones that died last first. next_at and next_id: where to go on before; one row at least for their sake.
with walked as materialized (
    select id, dead_at, row_number() over (order by dead_at desc, id desc) as n, fits, bytes from (
        select
            id, dead_at, coalesce((?6 is null or instr(last_error, ?6) > 0) and (?7 is null or ordering_key is ?7)
                and (?8 is null or caller is ?8), 0) as fits,
            iif(?12, length(payload), 0) + coalesce(length(headers), 0) + coalesce(length(last_error), 0) as bytes
        from dead_job
        where queue_id = ?1 and (dead_at, id) < (coalesce(?2, 9223372036854775807), coalesce(?3, 0))
            and dead_at > coalesce(?4, -1) and dead_at < coalesce(?5, 9223372036854775807)
        order by dead_at desc, id desc limit ?9
    )
),
picked as (
    select id, n from (
        select id, n, sum(bytes) over (order by n) - bytes as before from walked where fits order by n limit ?10
    )
    where before <= ?11
),
stop as (
    select case
        when (select count(*) from picked) < (select count(*) from walked where fits) then (select max(n) from picked)
        when (select count(*) from walked) >= ?9 then ?9
    end as n
)
select
    (select dead_at from walked where n = stop.n) as next_at, (select id from walked where n = stop.n) as next_id,
    dead_job.id, dead_job.queue_id, (select name from queue where queue.id = dead_job.queue_id) as queue_name, 5 as state,
    iif(?12, dead_job.payload, null) as payload, length(dead_job.payload) as payload_bytes, dead_job.content_type, dead_job.headers, dead_job.priority,
    dead_job.attempt, dead_job.max_attempts, dead_job.lease_number, dead_job.enqueued_at, dead_job.available_at,
    null as ready_at, null as lease_until, null as lease_stream, 0 as cancel_requested, dead_job.ordering_key,
    dead_job.idempotency_key, dead_job.last_error, dead_job.dead_at, dead_job.expires_at, null as acked_at,
    dead_job.traceparent, dead_job.tracestate, dead_job.caller
from stop
left join picked on true
left join dead_job on dead_job.id = picked.id
order by picked.n
