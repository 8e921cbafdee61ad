-- ?1 replica, ?2 [queue, …]
delete from replica_demand where replica = ?1 and queue_name in (select value from json_each(?2))
