-- ? [reservation, …], all of them locked by this transaction
delete j
from json_table(?, '$[*]' columns (id bigint path '$')) v
straight_join leasehold_reservation_job j force index (primary) on j.reservation_id = v.id
