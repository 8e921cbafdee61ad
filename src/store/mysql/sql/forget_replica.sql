-- ? replica
delete from leasehold_replica where id = ?
