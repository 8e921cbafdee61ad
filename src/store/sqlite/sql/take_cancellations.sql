-- ?1 first, ?2 last
delete from cancellation where (lease_stream, job_id) in (
    select lease_stream, job_id from cancellation where lease_stream between ?1 and ?2 limit 1000
)
returning job_id
