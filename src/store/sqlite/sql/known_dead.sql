-- ?1 [job, …]
-- Those that are dead, of queues that exist and are not being deleted.
select dead_job.id from json_each(?1) ref
cross join dead_job on dead_job.id = ref.value
cross join queue on queue.id = dead_job.queue_id and queue.closing_since is null
