-- What this role lacks to serve on tables $1 (of the schema; the list of migrations is read alone, the ledger of stock read and
-- added to), as privilege and object.
-- The case keeps other relations from being asked as sequences.
select l.privilege, l.object
from (
    select 1 as place, 'usage' as privilege, 'schema leasehold' as object
    from pg_namespace n
    where n.nspname = 'leasehold' and not has_schema_privilege(n.oid, 'usage')
    union all
    select 2, string_agg(p.privilege, ', ' order by p.n), 'leasehold.' || c.relname
    from pg_class c
    join pg_namespace n on n.oid = c.relnamespace
    cross join unnest(array['select', 'insert', 'update', 'delete']) with ordinality p (privilege, n)
    where n.nspname = 'leasehold' and c.relkind = 'r' and c.relname = any($1::text[])
        and (c.relname <> 'schema_migration' or p.privilege = 'select')
        and (c.relname <> 'stock_ledger' or p.privilege in ('select', 'insert'))
        and not has_table_privilege(c.oid, p.privilege)
    group by c.relname
    union all
    select 3, 'usage', 'sequence leasehold.' || c.relname
    from pg_class c
    join pg_namespace n on n.oid = c.relnamespace
    where n.nspname = 'leasehold' and case when c.relkind = 'S' then not has_sequence_privilege(c.oid, 'usage') else false end
    union all
    select 4, 'execute', 'all functions in schema leasehold'
    from pg_namespace n
    where n.nspname = 'leasehold'
        and exists (select from pg_proc p where p.pronamespace = n.oid and not has_function_privilege(p.oid, 'execute'))
) l
order by l.place, l.object
limit 50
