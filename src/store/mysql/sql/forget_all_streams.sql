-- ? first, ? last
delete from leasehold_replica_stream where id between ? and ?
