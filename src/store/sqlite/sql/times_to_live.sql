-- ?1 [queue, …]
-- The times to live of those that have one, by their place in the list.
select asked.key as n, queue.time_to_live
from json_each(?1) asked
cross join queue on queue.id = asked.value and queue.time_to_live is not null
