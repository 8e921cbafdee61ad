-- Who keeps old row versions of this database alive, the oldest first: sessions, prepared transactions, slots and standbys.
select h.kind, h.name, h.detail, h.seconds, h.transactions, h.log_bytes
from (
    select case when a.backend_type = 'walsender' then 'standby' else 'session' end as kind,
        a.pid::text as name,
        concat_ws(', ', 'role ' || a.usename, nullif(a.application_name, ''), a.state) as detail,
        extract(epoch from clock_timestamp() - a.xact_start)::float8 as seconds,
        greatest(age(a.backend_xmin), age(a.backend_xid))::bigint as transactions,
        0::bigint as log_bytes
    from pg_stat_activity a
    where (a.backend_xmin is not null or a.backend_xid is not null)
        and (a.datid is null or a.datname = current_database())
        and a.pid <> pg_backend_pid()
        and a.backend_type <> 'autovacuum worker'
    union all
    select 'prepared', p.gid, 'role ' || p.owner, extract(epoch from clock_timestamp() - p.prepared)::float8,
        age(p.transaction)::bigint, 0
    from pg_prepared_xacts p
    where p.database = current_database()
    union all
    select 'slot', s.slot_name::text, concat_ws(', ', s.slot_type, case when not s.active then 'nobody connected' end), null,
        coalesce(age(s.xmin), 0)::bigint,
        case when not pg_is_in_recovery() and not s.active
            then coalesce(pg_wal_lsn_diff(pg_current_wal_lsn(), s.restart_lsn), 0)::bigint
            else 0
        end
    from pg_replication_slots s
    where s.xmin is not null or not s.active
) h
order by h.seconds desc nulls last, h.transactions desc
limit 20
