-- ?1 reservation, ?2 expires_at, ?3 [[item, location, quantity], …]
insert into reservation_line (reservation_id, line, item, location, quantity, expires_at)
select ?1, line.key, line.value ->> 0, line.value ->> 1, line.value ->> 2, ?2
from json_each(?3) line
