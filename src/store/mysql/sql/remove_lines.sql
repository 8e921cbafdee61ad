-- ? [reservation, …], all of them locked by this transaction
delete l
from json_table(?, '$[*]' columns (id bigint path '$')) v
straight_join leasehold_reservation_line l force index (primary) on l.reservation_id = v.id
