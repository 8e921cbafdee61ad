-- ?1 [[queue, streams, free credit], …], ?2 replica
insert into replica_demand (replica, queue_name, streams, free_credit)
select ?2, said.value ->> 0, said.value ->> 1, said.value ->> 2
from json_each(?1) said
where true
on conflict (replica, queue_name) do update set streams = excluded.streams, free_credit = excluded.free_credit
