-- ? [[item in hexadecimal, location in hexadecimal, unit], …], all of them locked by this transaction
delete u
from json_table(?, '$[*]' columns (
    item varchar(400) path '$[0]', location varchar(400) path '$[1]', unit bigint path '$[2]'
)) v
straight_join leasehold_stock_unit u force index (primary)
    on u.item = unhex(v.item) and u.location = unhex(v.location) and u.unit = v.unit
