-- ?1 queue, ?2 and ?3 behind the one that died at this instant with this id, ?4 to ?8 as in list_dead.sql, ?9 rows to look at,
-- ?10 died until then, ?11 how many
-- Dead jobs, those that died first first. next_at and next_id: where to go on behind; one row at least for their sake.
with walked as materialized (
    select id, dead_at, row_number() over (order by dead_at, id) as n, fits from (
        select
            id, dead_at, coalesce((?6 is null or instr(last_error, ?6) > 0) and (?7 is null or ordering_key is ?7)
                and (?8 is null or caller is ?8), 0) as fits
        from dead_job
        where queue_id = ?1 and (dead_at, id) > (coalesce(?2, -1), coalesce(?3, 0))
            and dead_at > coalesce(?4, -1) and dead_at < coalesce(?5, 9223372036854775807) and dead_at <= ?10
        order by dead_at, id limit ?9
    )
),
picked as (
    select id, n from walked where fits order by n limit ?11
),
stop as (
    select case
        when (select count(*) from picked) >= ?11 then (select max(n) from picked)
        when (select count(*) from walked) >= ?9 then ?9
    end as n
)
select
    (select dead_at from walked where n = stop.n) as next_at, (select id from walked where n = stop.n) as next_id, picked.id
from stop
left join picked on true
order by picked.n
