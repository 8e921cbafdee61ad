-- ?1 item, ?2 location, ?3 now, ?4 limit
-- Reservations of a stock that are held past their time, the longest overdue first.
select reservation_id as id, expires_at
from reservation_line indexed by reservation_line_live
where item = ?1 and location = ?2 and live = 1 and expires_at <= ?3
order by expires_at
limit ?4
