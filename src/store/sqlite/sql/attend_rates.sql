-- ?1 [[queue, enqueued, leased, acked, retried, expired, dead], …], ?2 replica
insert into replica_rate (replica, queue_id, enqueued, leased, acked, retried, expired, dead)
select
    ?2, said.value ->> 0, said.value ->> 1, said.value ->> 2, said.value ->> 3, said.value ->> 4, said.value ->> 5,
    said.value ->> 6
from json_each(?1) said
where true
on conflict (replica, queue_id) do update set
    enqueued = excluded.enqueued, leased = excluded.leased, acked = excluded.acked, retried = excluded.retried,
    expired = excluded.expired, dead = excluded.dead
