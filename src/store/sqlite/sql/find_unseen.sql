-- ?1 [lease, …]
-- Jobs under these leases, expired or not. Runs after a claim whose answer was lost, so a walk over all leases will do.
select id, queue_id, ordering_key, cancel_requested from job indexed by job_lease
where lease_id is not null and lease_until > 0 and lease_id in (select unhex(value) from json_each(?1))
