-- ? reservation, ? expires_at, ? [[line, item in hexadecimal, location in hexadecimal, quantity], …]
insert into leasehold_reservation_line (reservation_id, live_until, line, item, location, quantity)
select ?, ?, v.line, unhex(v.item), unhex(v.location), v.quantity
from json_table(?, '$[*]' columns (
    line int path '$[0]', item varchar(400) path '$[1]', location varchar(400) path '$[2]', quantity int path '$[3]'
)) v
