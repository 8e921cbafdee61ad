-- ? floor, ? now, ? how many
-- Reservations that are held past their time, the longest overdue first.
select r.id, r.live_until, r.expiry_bytes
from leasehold_reservation r force index (reservation_live)
where r.live_until > ? and r.live_until <= ?
order by r.live_until
limit ?
