-- ? [[item in hexadecimal, location in hexadecimal], …] in the order of keys
-- Takes the stocks, waiting for others who do; those that are missing come into being.
insert into leasehold_stock (item, location)
select unhex(v.item), unhex(v.location)
from json_table(?, '$[*]' columns (item varchar(400) path '$[0]', location varchar(400) path '$[1]')) v
on duplicate key update next_unit = leasehold_stock.next_unit
