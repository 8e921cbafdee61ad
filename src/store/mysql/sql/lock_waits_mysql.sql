-- Who waits for whom.
select cast(w.processlist_id as signed) as waits, cast(h.processlist_id as signed) as holds
from performance_schema.data_lock_waits l
join performance_schema.threads w on w.thread_id = l.requesting_thread_id
join performance_schema.threads h on h.thread_id = l.blocking_thread_id
limit 1000
