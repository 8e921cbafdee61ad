-- ? item, ? location, ? floor, ? how many
-- The first units, those that others are about to take among them. Locks nothing.
select u.unit from leasehold_stock_unit u force index (primary)
where u.item = ? and u.location = ? and u.unit >= ?
order by u.unit
limit ?
