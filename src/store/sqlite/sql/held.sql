-- ?1 [[job, lease], …]
-- Those leases that hold, by their place in the list.
select
    ref.key as n, job.id, job.queue_id, job.ordering_key, job.attempt, job.max_attempts, job.lease_until,
    job.lease_duration, job.cancel_requested, queue.backoff_base, queue.backoff_cap,
    queue.acked_retention is not null as kept
from json_each(?1) ref
cross join job on job.id = ref.value ->> 0 and job.lease_id = unhex(ref.value ->> 1)
cross join queue on queue.id = job.queue_id
