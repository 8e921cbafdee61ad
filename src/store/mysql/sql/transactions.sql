-- Open transactions, the oldest first. The server says since when in its own time zone.
select cast(t.trx_mysql_thread_id as signed) as id, t.trx_state = 'LOCK WAIT' as waiting,
    greatest(timestampdiff(second, t.trx_started, convert_tz(utc_timestamp(6), '+00:00', 'SYSTEM')), 0) as seconds,
    t.trx_isolation_level in ('REPEATABLE READ', 'SERIALIZABLE') as keeps_snapshot, t.trx_query is not null as active
from information_schema.innodb_trx t
where t.trx_mysql_thread_id > 0
order by t.trx_started
limit 10000
