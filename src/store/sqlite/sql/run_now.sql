-- ?1 job, ?2 now
update job set available_at = min(available_at, ?2), ready_at = ?2
where id = ?1 and lease_id is null and (blocked or ready_at > ?2)
returning queue_id, blocked
