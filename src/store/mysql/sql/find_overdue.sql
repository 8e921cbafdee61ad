-- ? item, ? location, ? how many
-- Reservations of a stock that are held past their time, the longest overdue first.
select l.reservation_id as id, r.live_until, r.expiry_bytes
from leasehold_reservation_line l force index (reservation_line_live)
straight_join leasehold_reservation r force index (reservation_id) on r.id = l.reservation_id
where l.item = ? and l.location = ? and l.live_until > 0
    and l.live_until <= timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6))
order by l.live_until
limit ?
