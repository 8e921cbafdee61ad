-- ? [[place, item in hexadecimal, location in hexadecimal], …]
-- All figures of these keys.
select v.n, coalesce(s.on_hand, 0) as on_hand, coalesce(s.held, 0) as held, coalesce(s.unpooled, 0) as unpooled,
    cast(coalesce((
        select sum(d.on_hand) from leasehold_stock_delta d force index (primary)
        where d.item = unhex(v.item) and d.location = unhex(v.location)
    ), 0) as signed) as delta_on_hand,
    cast(coalesce((
        select sum(d.held) from leasehold_stock_delta d force index (primary)
        where d.item = unhex(v.item) and d.location = unhex(v.location)
    ), 0) as signed) as delta_held,
    cast(coalesce((
        select sum(d.free) from leasehold_stock_delta d force index (primary)
        where d.item = unhex(v.item) and d.location = unhex(v.location)
    ), 0) as signed) as delta_free,
    cast(coalesce((
        select sum(e.on_hand) from leasehold_stock_ledger e force index (primary)
        where e.item = unhex(v.item) and e.location = unhex(v.location)
    ), 0) as signed) as entered_on_hand,
    cast(coalesce((
        select sum(e.held) from leasehold_stock_ledger e force index (primary)
        where e.item = unhex(v.item) and e.location = unhex(v.location)
    ), 0) as signed) as entered_held,
    cast(coalesce((
        select sum(l.quantity) from leasehold_reservation_line l force index (reservation_line_live)
        where l.item = unhex(v.item) and l.location = unhex(v.location) and l.live_until > 0
    ), 0) as signed) as lines_held,
    (
        select count(*) from leasehold_stock_unit u force index (primary)
        where u.item = unhex(v.item) and u.location = unhex(v.location)
    ) as units
from json_table(?, '$[*]' columns (
    n int path '$[0]', item varchar(400) path '$[1]', location varchar(400) path '$[2]'
)) v
left join leasehold_stock s force index (primary) on s.item = unhex(v.item) and s.location = unhex(v.location)
