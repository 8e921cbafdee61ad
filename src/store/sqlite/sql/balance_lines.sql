-- ?1 [reservation, …], ?2 sign of on_hand, ?3 sign of held
-- Changes the stocks by what the reservations hold.
update stock
set on_hand = on_hand + ?2 * changed.units, held = held + ?3 * changed.units
from (
    select line.item, line.location, sum(line.quantity) as units
    from json_each(?1) ended
    cross join reservation_line line on line.reservation_id = ended.value
    group by line.item, line.location
) changed
where stock.item = changed.item and stock.location = changed.location
