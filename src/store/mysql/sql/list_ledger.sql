-- ? item, ? location, ? before, ? how many
-- Entries of a key, the newest first.
select e.id, e.kind, e.on_hand, e.held, e.reservation_id, e.entered_at, a.reference, a.reason
from leasehold_stock_ledger e force index (primary)
left join leasehold_stock_adjustment a force index (stock_adjustment_id) on a.id = e.adjustment_id
where e.item = ? and e.location = ? and e.id < ?
order by e.id desc
limit ?
