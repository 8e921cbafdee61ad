-- ?1 [[queue, priority, floor], …]
-- The first waiting job of each; null where nothing waits.
select
    spot.value ->> 0 as queue_id, spot.value ->> 1 as priority,
    (
        select min(ready_at) from job
        where queue_id = spot.value ->> 0 and priority = spot.value ->> 1 and lease_id is null and blocked = 0
            and ready_at > spot.value ->> 2
    ) as ready_at
from json_each(?1) spot
