-- ?1 [lease, …], ?2 now
-- Jobs under these leases. Runs after a claim whose answer was lost, so a walk over the leases that last will do; those that
-- have expired meanwhile are the reaper's.
select id, queue_id from job indexed by job_lease
where lease_id is not null and lease_until > ?2 and lease_id in (select unhex(value) from json_each(?1))
