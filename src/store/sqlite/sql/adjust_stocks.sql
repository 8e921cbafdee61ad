-- ?1 [[item, location, units], …]
update stock set on_hand = on_hand + (one.value ->> 2)
from json_each(?1) one
where stock.item = one.value ->> 0 and stock.location = one.value ->> 1
