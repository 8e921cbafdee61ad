-- ? [reservation, …]
-- Those of them that nobody holds, locked.
select r.id
from json_table(?, '$[*]' columns (id bigint path '$')) v
straight_join leasehold_reservation r force index (reservation_id) on r.id = v.id
where r.state > 1
for update /*!80001 of r */ skip locked
