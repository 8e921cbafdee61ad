-- ? replica
delete from leasehold_replica_demand where replica = ?
