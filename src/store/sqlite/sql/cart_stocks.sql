-- ?1 [[item, location], …], ?2 now
-- What there is of each, by its place in the list, and what reservations past their time hold of it.
select line.key as n, stock.on_hand, stock.held,
    (
        select coalesce(sum(overdue.quantity), 0)
        from reservation_line overdue indexed by reservation_line_live
        where overdue.item = stock.item and overdue.location = stock.location and overdue.live = 1
            and overdue.expires_at <= ?2
    ) as overdue
from json_each(?1) line
cross join stock on stock.item = line.value ->> 0 and stock.location = line.value ->> 1
