-- ? kind, ? now, ? sign of on_hand, ? sign of held, ? sign of free, ? [reservation, …]
-- What whoever has the stock's lock next is to add to it, for each line of the reservations.
insert into leasehold_stock_delta (item, location, kind, made_at, reservation_id, on_hand, held, free)
select l.item, l.location, ?, ?, l.reservation_id, ? * l.quantity, ? * l.quantity, ? * l.quantity
from json_table(?, '$[*]' columns (id bigint path '$')) v
straight_join leasehold_reservation_line l force index (primary) on l.reservation_id = v.id
