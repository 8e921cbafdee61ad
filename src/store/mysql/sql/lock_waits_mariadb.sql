-- Who waits for whom.
select cast(w.trx_mysql_thread_id as signed) as waits, cast(h.trx_mysql_thread_id as signed) as holds
from information_schema.innodb_lock_waits l
join information_schema.innodb_trx w on w.trx_id = l.requesting_trx_id
join information_schema.innodb_trx h on h.trx_id = l.blocking_trx_id
limit 1000
