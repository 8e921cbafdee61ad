-- ? created_at, ? expires_at, ? expires_at, ? reference, whose row is locked by this transaction
update leasehold_reservation r force index (primary)
set r.created_at = ?, r.expires_at = ?, r.live_until = ?
where r.reference = ?
