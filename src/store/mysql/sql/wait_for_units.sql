-- ? [[item in hexadecimal, location in hexadecimal, unit], …]
-- Those of these units that are left by those who were about to take them, locked. Each is found by its whole key: a range would
-- also wait for the first unit behind its end, which is another stock's, and two such waits make a deadlock.
select u.unit
from json_table(?, '$[*]' columns (
    item varchar(400) path '$[0]', location varchar(400) path '$[1]', unit bigint path '$[2]'
)) v
straight_join leasehold_stock_unit u force index (primary)
    on u.item = unhex(v.item) and u.location = unhex(v.location) and u.unit = v.unit
for update /*!80001 of u */
