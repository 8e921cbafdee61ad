-- Entries of item $1 at location $2 with numbers below $3, newest first, $4 at most.
select g.id, g.kind, g.on_hand, g.held, g.reservation_id, g.entered_at, a.reference, a.reason
from (
    select g.id, g.kind, g.on_hand, g.held, g.reservation_id, g.entered_at, g.adjustment_id
    from leasehold.stock_ledger g
    where g.item = $1::text and g.location = $2::text and g.id < $3::bigint
    order by g.id desc
    limit $4::int
) g
left join lateral (
    select a.reference, a.reason from leasehold.stock_adjustment a where a.id = g.adjustment_id offset 0
) a on true
order by g.id desc
