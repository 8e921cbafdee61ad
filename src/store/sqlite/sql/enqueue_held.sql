-- ?1 [[queue, key], …]
-- Those ordering keys under which a job is stored, by their place in the list.
select name.key as n
from json_each(?1) name
where exists (select 1 from job where job.queue_id = name.value ->> 0 and job.ordering_key = name.value ->> 1)
