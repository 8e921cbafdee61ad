-- ? [[place, item in hexadecimal, location in hexadecimal], …] in the order of keys
-- Takes those stocks that nobody has.
select v.n, s.on_hand, s.held, s.unpooled, s.next_unit, s.unit_floor, s.delta_floor
from json_table(?, '$[*]' columns (
    n int path '$[0]', item varchar(400) path '$[1]', location varchar(400) path '$[2]'
)) v
straight_join leasehold_stock s force index (primary) on s.item = unhex(v.item) and s.location = unhex(v.location)
for update /*!80001 of s */ skip locked
