-- ?1 [[item, location, units], …], ?2 adjustment, ?3 now
insert into stock_ledger (item, location, kind, on_hand, held, adjustment_id, entered_at)
select one.value ->> 0, one.value ->> 1, 1, one.value ->> 2, 0, ?2, ?3
from json_each(?1) one
