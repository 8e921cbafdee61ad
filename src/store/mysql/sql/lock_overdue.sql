-- ? [reservation, …]
-- Those of them that are held past their time and that nobody is about to end, locked.
select r.id, r.live_until,
    timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6)) as now
from json_table(?, '$[*]' columns (id bigint path '$')) v
straight_join leasehold_reservation r force index (reservation_id) on r.id = v.id
where r.state = 1 and r.live_until <= timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6))
for update /*!80001 of r */ skip locked
