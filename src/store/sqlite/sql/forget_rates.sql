-- ?1 replica, ?2 [queue, …]
delete from replica_rate where replica = ?1 and queue_id in (select value from json_each(?2))
