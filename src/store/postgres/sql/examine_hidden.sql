-- Sessions on this database of which this role sees no more than that they are there.
select count(1) as hidden
from pg_stat_activity a
where a.datname = current_database() and a.pid <> pg_backend_pid() and a.query = '<insufficient privilege>'
