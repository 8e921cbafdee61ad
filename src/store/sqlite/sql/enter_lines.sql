-- ?1 [reservation, …], ?2 kind, ?3 sign of on_hand, ?4 sign of held, ?5 now
-- An entry of the ledger for each line of the reservations.
insert into stock_ledger (item, location, kind, on_hand, held, reservation_id, entered_at)
select line.item, line.location, ?2, ?3 * line.quantity, ?4 * line.quantity, line.reservation_id, ?5
from json_each(?1) ended
cross join reservation_line line on line.reservation_id = ended.value
