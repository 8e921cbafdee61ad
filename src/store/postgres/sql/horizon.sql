-- Who keeps dead rows of this database from being removed, oldest first, $1 at most; statements up to $2 characters. Slots
-- that need rows of the catalogs alone come last. The answering session does not count, nor do vacuums, which ignore each
-- other.
select h.kind, convert_to(h.name, 'UTF8') as name, h.transactions::bigint as transactions, h.since,
    clock_timestamp() as at, h.of_own_role, convert_to(h.application_name, 'UTF8') as application_name,
    convert_to(left(h.statement, $2::int), 'UTF8') as statement,
    char_length(h.statement) > $2::int
        or octet_length(h.statement) >= pg_size_bytes(current_setting('track_activity_query_size')) - 4 as cut,
    h.catalogs_only, h.hidden
from (
    select case when a.backend_type = 'walsender' then 'standby' else 'session' end as kind,
        case when a.backend_type = 'walsender' then a.application_name else a.pid::text end as name,
        greatest(age(a.backend_xmin), age(a.backend_xid)) as transactions,
        case when a.backend_type = 'walsender' then null else a.xact_start end as since,
        a.usename is not distinct from session_user as of_own_role,
        coalesce(nullif(a.application_name, ''), nullif(a.backend_type, 'client backend'), '') as application_name,
        a.query as statement,
        false as catalogs_only,
        a.backend_type is null as hidden
    from pg_stat_activity a
    where (a.backend_xmin is not null or a.backend_xid is not null)
        and (a.datname = current_database() or a.backend_type = 'walsender')
        and a.pid <> pg_backend_pid()
        and a.leader_pid is null
        and not exists (select from pg_stat_progress_vacuum v where v.pid = a.pid)
    union all
    select 'prepared', p.gid, age(p.transaction), p.prepared, p.owner = session_user, '', '', false, false
    from pg_prepared_xacts p
    where p.database = current_database()
    union all
    select 'slot', s.slot_name::text, age(coalesce(s.xmin, s.catalog_xmin)), null, false,
        coalesce(
            (select a.application_name from pg_stat_activity a where a.pid = s.active_pid),
            ''
        ),
        '', s.xmin is null, false
    from pg_get_replication_slots() s
    where s.xmin is not null
        or s.catalog_xmin is not null
            and s.datoid = (select d.oid from pg_database d where d.datname = current_database())
) h
order by h.catalogs_only, h.transactions desc, h.since, h.name
limit $1::int
