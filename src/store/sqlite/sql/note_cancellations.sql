-- ?1 [[stream, job], …]
-- For the replica that has the streams, where it is there.
insert into cancellation (lease_stream, job_id)
select told.value ->> 0, told.value ->> 1
from json_each(?1) told
where exists (select 1 from replica where id = ((told.value ->> 0) >> 32) & 4294967295)
on conflict (lease_stream, job_id) do nothing
