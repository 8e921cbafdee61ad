-- Indexes on the schema's tables.
select x.relname::text as name, c.relname::text as table_name, i.indisvalid and i.indisready and i.indislive as usable,
    exists (select from pg_constraint k where k.conindid = i.indexrelid and k.contype in ('p', 'u', 'x')) as by_constraint,
    s.idx_scan as scans
from pg_index i
join pg_class x on x.oid = i.indexrelid
join pg_class c on c.oid = i.indrelid
join pg_namespace n on n.oid = c.relnamespace
left join pg_stat_all_indexes s on s.indexrelid = i.indexrelid
where n.nspname = 'leasehold' and c.relkind in ('r', 'p')
order by c.relname, x.relname
limit 500
