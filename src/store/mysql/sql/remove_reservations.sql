-- ? [reservation, …], all of them locked by this transaction
delete r
from json_table(?, '$[*]' columns (id bigint path '$')) v
straight_join leasehold_reservation r force index (reservation_id) on r.id = v.id
