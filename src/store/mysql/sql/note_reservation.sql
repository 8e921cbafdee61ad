-- ? reference, whose row is locked by this transaction
update leasehold_reservation r force index (primary) set r.hits = r.hits + 1 where r.reference = ?
