-- ?1 queue, ?2 behind this job, ?3 [state, …], ?4 ordering key or null, ?5 caller or null, ?6 rows to look at, ?7 rows to
-- bring, ?8 bytes to bring, ?9 with payloads, ?10 now
-- Live jobs in the order of ids. next_id: where to go on behind; one row at least for its sake.
with walked as materialized (
    select id, row_number() over (order by id) as n, fits, bytes from (
        select
            id, queue_id = ?1
                and case when lease_id is not null then 4 when blocked then 3 when ready_at > ?10 then 2 else 1 end
                    in (select value from json_each(?3))
                and (?4 is null or ordering_key is ?4) and (?5 is null or caller is ?5) as fits,
            iif(?9, length(payload), 0) + coalesce(length(headers), 0) + coalesce(length(last_error), 0) as bytes
        from job where id > ?2 order by id limit ?6
    )
),
picked as (
    select id, n from (
        select id, n, sum(bytes) over (order by n) - bytes as before from walked where fits order by n limit ?7
    )
    where before <= ?8
),
stop as (
    select case
        when (select count(*) from picked) < (select count(*) from walked where fits) then (select max(n) from picked)
        when (select count(*) from walked) >= ?6 then ?6
    end as n
)
select
    (select id from walked where n = stop.n) as next_id,
    job.id, job.queue_id, (select name from queue where queue.id = job.queue_id) as queue_name,
    case when job.lease_id is not null then 4 when job.blocked then 3 when job.ready_at > ?10 then 2 else 1 end as state,
    iif(?9, job.payload, null) as payload, length(job.payload) as payload_bytes, job.content_type, job.headers, job.priority, job.attempt,
    job.max_attempts, job.lease_number, job.enqueued_at, job.available_at, iif(job.blocked, null, job.ready_at) as ready_at,
    job.lease_until, job.lease_stream, job.cancel_requested, job.ordering_key, job.idempotency_key, job.last_error,
    null as dead_at, null as expires_at, null as acked_at, job.traceparent, job.tracestate, job.caller
from stop
left join picked on true
left join job on job.id = picked.id
order by picked.n
