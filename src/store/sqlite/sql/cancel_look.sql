-- ?1 [job, …]
-- What there is to know before jobs are cancelled, by their place in the list.
select ref.key as n, job.id, job.queue_id, job.ordering_key, job.blocked, job.lease_id is not null as leased, job.lease_stream
from json_each(?1) ref
cross join job on job.id = ref.value
