-- ? item, ? location, ? floor, ? how many
-- The first units, locked; those that others are about to take are passed over.
select u.unit from leasehold_stock_unit u force index (primary)
where u.item = ? and u.location = ? and u.unit >= ?
order by u.unit
limit ?
for update skip locked
