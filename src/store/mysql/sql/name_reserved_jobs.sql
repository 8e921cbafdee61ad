-- ? [job, …] as JSON, ? reference, whose row is locked by this transaction
update leasehold_reservation r force index (primary) set r.jobs = ? where r.reference = ?
