-- ?1 [[stream, consumer, peer, caller, queues, max_in_flight, in_flight, oldest lease at, opened at], …], ?2 replica
insert into replica_stream (
    id, replica, consumer, peer, caller, queues, max_in_flight, in_flight, oldest_lease_at, opened_at
)
select
    said.value ->> 0, ?2, said.value ->> 1, said.value ->> 2, said.value ->> 3, said.value ->> 4, said.value ->> 5,
    said.value ->> 6, said.value ->> 7, said.value ->> 8
from json_each(?1) said
where true
on conflict (id) do update set in_flight = excluded.in_flight, oldest_lease_at = excluded.oldest_lease_at
