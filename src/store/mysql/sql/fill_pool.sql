-- ? item, ? location, ? [unit, …]
insert into leasehold_stock_unit (item, location, unit)
select ?, ?, v.unit
from json_table(?, '$[*]' columns (unit bigint path '$')) v
