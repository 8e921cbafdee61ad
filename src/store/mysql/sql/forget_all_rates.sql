-- ? replica
delete from leasehold_replica_rate where replica = ?
