-- Connections that there may be and that there are, this one left out. Sessions of other roles may show little of themselves,
-- but they show that they are there.
with seen as materialized (
    select a.usename, a.datname, a.application_name
    from pg_stat_activity a
    where a.datid is not null and coalesce(a.backend_type, 'client backend') = 'client backend' and a.pid <> pg_backend_pid()
)
select current_setting('max_connections')::bigint as allowed,
    current_setting('superuser_reserved_connections')::bigint
        + coalesce(current_setting('reserved_connections', true), '0')::bigint as reserved,
    (select count(1) from seen) as in_use,
    (
        select count(1) from seen s
        where s.usename = current_user and s.datname = current_database() and s.application_name like 'leasehold/%'
    ) as ours,
    (select r.rolconnlimit::bigint from pg_roles r where r.rolname = current_user) as role_limit,
    (select count(1) from seen s where s.usename = current_user) as role_in_use,
    (select d.datconnlimit::bigint from pg_database d where d.datname = current_database()) as database_limit,
    (select count(1) from seen s where s.datname = current_database()) as database_in_use
