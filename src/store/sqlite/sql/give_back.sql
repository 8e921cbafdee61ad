-- ?1 [job, …], ?2 now
-- Undoes grants that were never sent: no attempt, ready now.
update job set
    lease_id = null, lease_until = null, lease_duration = null, lease_stream = null,
    attempt = max(attempt - 1, 0), ready_at = ?2
where id in (select value from json_each(?1))
