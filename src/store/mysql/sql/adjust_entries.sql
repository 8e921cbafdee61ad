-- ? adjustment, ? now, ? [[item in hexadecimal, location in hexadecimal, units], …]
insert into leasehold_stock_ledger (item, location, kind, on_hand, held, adjustment_id, entered_at)
select unhex(v.item), unhex(v.location), 1, v.units, 0, ?, ?
from json_table(?, '$[*]' columns (
    item varchar(400) path '$[0]', location varchar(400) path '$[1]', units bigint path '$[2]'
)) v
