-- ?1 [reservation, …]
-- Their jobs on expiry whose queues are there and not being deleted, in the order of the joins: as asked, then by place.
select job.reservation_id, job.place
from json_each(?1) ended
cross join reservation_job job on job.reservation_id = ended.value
cross join queue on queue.id = job.queue_id and queue.closing_since is null
