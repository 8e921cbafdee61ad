-- ? expires_at, ? reservation, whose row is locked by this transaction
update leasehold_reservation_line l force index (primary) set l.live_until = ? where l.reservation_id = ?
