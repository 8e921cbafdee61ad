-- ? [[place, item in hexadecimal, location in hexadecimal], …]
-- What reservations past their time hold counts as free.
select v.n, s.next_unit,
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
from json_table(?, '$[*]' columns (
    n int path '$[0]', item varchar(400) path '$[1]', location varchar(400) path '$[2]'
)) v
straight_join leasehold_stock s force index (primary) on s.item = unhex(v.item) and s.location = unhex(v.location)
