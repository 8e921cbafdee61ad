-- Sessions of this database and those that send changes away, $1 at most; statements up to $2 characters. Those that hold
-- something come first, then the idle ones, each the longest in its state first. Every row repeats what is true of them all.
-- Whom a session waits for is asked of 64 that wait, since each question stops the lock table for a moment. Texts come as
-- bytes: a database without an encoding keeps any.
with seen as materialized (
    select a.pid, a.leader_pid, a.backend_type, a.state, a.state_change, a.backend_start, a.xact_start, a.usename,
        a.application_name, a.client_addr, a.query, a.datid,
        a.wait_event_type is not distinct from 'Lock' as waiting
    from pg_stat_activity a
),
counted as (
    select count(*) as connections,
        count(*) filter (where s.datid is distinct from d.oid) as elsewhere
    from seen s
    cross join (select b.oid from pg_database b where b.datname = current_database()) d
    where s.backend_type = 'client backend' or s.backend_type is null and s.datid is not null
),
ours as (
    select s.pid, s.leader_pid, s.backend_type, s.state, s.state_change, s.backend_start, s.xact_start, s.usename,
        s.application_name, s.client_addr, s.query, s.waiting,
        row_number() over (
            order by s.state is not distinct from 'idle', coalesce(s.state_change, s.backend_start), s.pid
        ) as place,
        row_number() over (partition by s.waiting order by s.state_change, s.pid) as place_in_wait,
        count(*) over () as total
    from seen s
    where s.datid = (select b.oid from pg_database b where b.datname = current_database())
        or s.backend_type = 'walsender'
)
select clock_timestamp() as at,
    o.total,
    c.connections,
    c.elsewhere,
    current_setting('max_connections')::int as max_connections,
    current_setting('track_activities') = 'on' as tracked,
    current_setting('track_activity_query_size') as statement_size,
    session_user::text as own_role,
    o.pid,
    o.pid = pg_backend_pid() as observer,
    o.leader_pid,
    o.backend_type,
    o.backend_type is null as hidden,
    o.state,
    coalesce(o.state_change, o.backend_start) as state_since,
    o.xact_start as transaction_since,
    o.waiting,
    case when o.waiting and o.place_in_wait <= 64 then pg_blocking_pids(o.pid) end as blocked_by,
    convert_to(coalesce(o.usename::text, ''), 'UTF8') as role,
    o.usename is not distinct from session_user as of_own_role,
    convert_to(
        coalesce(nullif(o.application_name, ''), nullif(o.backend_type, 'client backend'), ''),
        'UTF8'
    ) as application_name,
    host(o.client_addr) as client_address,
    convert_to(left(o.query, $2::int), 'UTF8') as statement,
    char_length(o.query) > $2::int
        or octet_length(o.query) >= pg_size_bytes(current_setting('track_activity_query_size')) - 4 as cut
from ours o
cross join counted c
where o.place <= $1::int
order by o.place
