-- ?1 [[item, location, units], …]
-- Those that are missing come into being.
insert into stock (item, location)
select one.value ->> 0, one.value ->> 1
from json_each(?1) one
where true
on conflict (item, location) do nothing
