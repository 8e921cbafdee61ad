-- ?1 item, ?2 location, ?3 before, ?4 limit
-- Entries of a key, the newest first.
select entry.id, entry.kind, entry.on_hand, entry.held, entry.reservation_id, entry.entered_at, adjustment.reference,
    adjustment.reason
from stock_ledger entry
left join stock_adjustment adjustment on adjustment.id = entry.adjustment_id
where entry.item = ?1 and entry.location = ?2 and entry.id < ?3
order by entry.id desc
limit ?4
