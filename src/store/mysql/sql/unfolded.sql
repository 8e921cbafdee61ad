-- ? item, ? location, ? item, ? how many
select d.item, d.location
from leasehold_stock_delta d force index (primary)
where (d.item = ? and d.location > ?) or d.item > ?
group by d.item, d.location
order by d.item, d.location
limit ?
