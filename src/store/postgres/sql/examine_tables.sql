-- The schema's tables with their storage settings, those of what is stored out of line marked so, and estimates of their rows.
select c.relname::text as name,
    array(
        select o.name from unnest(c.reloptions) o (name)
        union all
        select 'toast.' || o.name from unnest(t.reloptions) o (name)
    ) as options,
    coalesce(s.n_live_tup, 0) as live,
    coalesce(s.n_dead_tup, 0) as dead
from pg_class c
join pg_namespace n on n.oid = c.relnamespace
left join pg_class t on t.oid = c.reltoastrelid
left join pg_stat_all_tables s on s.relid = c.oid
where n.nspname = 'leasehold' and c.relkind in ('r', 'p')
order by c.relname
limit 200
