-- ?1 floor, ?2 now, ?3 limit
-- Leases that ended, the longest expired first.
select id, queue_id, ordering_key, attempt, max_attempts, lease_id, lease_until, cancel_requested from job
where lease_id is not null and lease_until > ?1 and lease_until <= ?2
order by lease_until limit ?3
