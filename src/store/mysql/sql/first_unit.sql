-- ? item, ? location, ? floor
select u.unit from leasehold_stock_unit u force index (primary)
where u.item = ? and u.location = ? and u.unit >= ?
order by u.unit
limit 1
