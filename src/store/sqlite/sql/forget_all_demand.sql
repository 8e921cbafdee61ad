-- ?1 replica
delete from replica_demand where replica = ?1
