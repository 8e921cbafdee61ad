-- ?1 behind this stream, ?2 now, ?3 replicas not seen since then are as if they were not, ?4 queue or null, ?5 rows to look at,
-- ?6 rows to bring
-- Lease streams in the order of their numbers. next_id: where to go on behind; one row at least for its sake.
with walked as materialized (
    select id, row_number() over (order by id) as n, fits from (
        select
            id, (?4 is null or instr(queues, ' ' || ?4 || ' ') > 0)
                and replica in (select id from replica where seen_at > ?3) as fits
        from replica_stream where id > ?1 order by id limit ?5
    )
),
picked as (
    select id, n from walked where fits order by n limit ?6
),
stop as (
    select case
        when (select count(*) from picked) < (select count(*) from walked where fits) then (select max(n) from picked)
        when (select count(*) from walked) >= ?5 then ?5
    end as n
)
select
    (select id from walked where n = stop.n) as next_id,
    stream.id as stream, replica.name as replica, stream.consumer, stream.peer, stream.caller as stream_caller, stream.queues,
    stream.max_in_flight, stream.in_flight, ?2 - stream.oldest_lease_at as oldest_age, stream.opened_at, replica.seen_at
from stop
left join picked on true
left join replica_stream stream on stream.id = picked.id
left join replica on replica.id = stream.replica
order by picked.n
