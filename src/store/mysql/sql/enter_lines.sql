-- ? kind, ? sign of on_hand, ? sign of held, ? now, ? [reservation, …]
-- An entry of the ledger for each line of the reservations.
insert into leasehold_stock_ledger (item, location, kind, on_hand, held, reservation_id, entered_at)
select l.item, l.location, ?, ? * l.quantity, ? * l.quantity, l.reservation_id, ?
from json_table(?, '$[*]' columns (id bigint path '$')) v
straight_join leasehold_reservation_line l force index (primary) on l.reservation_id = v.id
