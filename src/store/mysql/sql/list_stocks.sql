-- ? item, ? location, ? how many
-- Stocks of an item at locations behind the one given. What reservations past their time hold counts as free.
select s.item, s.location,
    cast(s.on_hand + coalesce((
        select sum(d.on_hand) from leasehold_stock_delta d force index (primary)
        where d.item = s.item and d.location = s.location
    ), 0) as signed) as on_hand,
    cast(s.held + coalesce((
        select sum(d.held) from leasehold_stock_delta d force index (primary)
        where d.item = s.item and d.location = s.location
    ), 0) - coalesce((
        select sum(l.quantity) from leasehold_reservation_line l force index (reservation_line_live)
        where l.item = s.item and l.location = s.location and l.live_until > 0
            and l.live_until <= timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6))
    ), 0) as signed) as held
from leasehold_stock s force index (primary)
where s.item = ? and s.location > ?
order by s.location
limit ?
