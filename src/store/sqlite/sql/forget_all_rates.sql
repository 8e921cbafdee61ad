-- ?1 replica
delete from replica_rate where replica = ?1
