-- ? [reservation, …], all of them held and locked by this transaction, ? state, ? now
update json_table(?, '$[*]' columns (id bigint path '$')) v
straight_join leasehold_reservation r force index (reservation_id) on r.id = v.id
set r.state = ?, r.ended_at = ?, r.live_until = null
