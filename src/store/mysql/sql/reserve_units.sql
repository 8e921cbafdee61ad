-- ? place, ? item, ? location, ? item, ? location, ? item, ? location, ? how many, for each
-- Free units that nobody is about to take, locked, from each stock's floor on; the stock itself is not locked. A query for
-- each, since no join is cut off after a number of rows. The last line is repeated.
(select cast(? as signed) as n, u.unit, (select s.next_unit from leasehold_stock s force index (primary) where s.item = ? and s.location = ?) as next_unit from leasehold_stock_unit u force index (primary) where u.item = ? and u.location = ? and u.unit >= (select s.unit_floor from leasehold_stock s force index (primary) where s.item = ? and s.location = ?) order by u.unit limit ? for update skip locked)
