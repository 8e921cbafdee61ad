-- ? replica
select p.id from leasehold_replica p where p.id = ?
