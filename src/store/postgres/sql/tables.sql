-- Statistics of our own tables. Sizes are those that vacuum and analyze wrote down: to measure a table would wait for whoever
-- has locked it.
select s.relname::text as table_name,
    s.n_live_tup as live_rows,
    s.n_dead_tup as dead_rows,
    greatest(s.last_vacuum, s.last_autovacuum) as last_vacuum,
    (
        c.relpages::bigint
        + coalesce((select sum(i.relpages) from pg_index x join pg_class i on i.oid = x.indexrelid where x.indrelid = c.oid), 0)
        + coalesce((select t.relpages from pg_class t where t.oid = c.reltoastrelid), 0)
    )::bigint * current_setting('block_size')::bigint as bytes
from pg_stat_user_tables s
join pg_class c on c.oid = s.relid
where s.schemaname = 'leasehold'
order by s.relname
limit 64
