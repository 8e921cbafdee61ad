-- ? item, ? location, ? floor, ? how many
-- What was left to be folded and is committed, locked.
select d.made_at, d.reservation_id, d.kind, d.on_hand, d.held, d.free
from leasehold_stock_delta d force index (primary)
where d.item = ? and d.location = ? and d.made_at >= ?
order by d.made_at, d.reservation_id, d.kind
limit ?
for update skip locked
