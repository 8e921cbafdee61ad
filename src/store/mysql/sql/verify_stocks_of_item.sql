-- ? item, ? location, ? how many
-- Keys of an item behind the location given.
select k.item, k.location
from leasehold_stock k force index (primary)
where k.item = ? and k.location > ?
group by k.item, k.location
order by k.item, k.location
limit ?
