-- ?1 [[queue, ordering key], …]
-- Those keys that have a job which is not blocked, by their place in the list.
select name.key as n
from json_each(?1) name
where exists (
    select 1 from job
    where job.queue_id = name.value ->> 0 and job.ordering_key = name.value ->> 1 and job.blocked = 0
)
