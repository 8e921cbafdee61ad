-- Who we are and what we may do beyond serving.
select r.rolname::text as name, r.rolsuper as superuser, r.rolcreaterole as creates_roles, r.rolcreatedb as creates_databases,
    r.rolreplication as replicates, r.rolbypassrls as bypasses,
    coalesce(has_schema_privilege(n.oid, 'create') or pg_has_role(n.nspowner, 'usage'), false)
        or exists (
            select from pg_class c where c.relnamespace = n.oid and c.relkind = 'r' and pg_has_role(c.relowner, 'usage')
        ) as shapes_tables
from pg_roles r
left join pg_namespace n on n.nspname = 'leasehold'
where r.rolname = current_user
