-- ?1 item, ?2 location, ?3 now, ?4 limit
-- Stocks of an item at locations behind the one given. What reservations past their time hold counts as free.
select stock.item, stock.location, stock.on_hand, stock.held - (
        select coalesce(sum(overdue.quantity), 0)
        from reservation_line overdue indexed by reservation_line_live
        where overdue.item = stock.item and overdue.location = stock.location and overdue.live = 1
            and overdue.expires_at <= ?3
    ) as held
from stock
where stock.item = ?1 and stock.location > ?2
order by stock.location
limit ?4
