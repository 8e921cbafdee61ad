-- ? [reservation, …]
-- Their jobs on expiry whose queues are there and not being deleted.
select j.reservation_id, j.place, j.queue_id, j.ordering_key
from json_table(?, '$[*]' columns (id bigint path '$')) v
straight_join leasehold_reservation_job j force index (primary) on j.reservation_id = v.id
straight_join leasehold_queue q force index (primary) on q.id = j.queue_id and q.closing_since is null
order by j.reservation_id, j.place
