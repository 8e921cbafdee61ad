-- ? item, ? location, ? item, ? how many
-- Keys behind the one given.
select k.item, k.location
from leasehold_stock_ledger k force index (primary)
where (k.item = ? and k.location > ?) or k.item > ?
group by k.item, k.location
order by k.item, k.location
limit ?
