-- ?1 floor, ?2 now, ?3 limit
-- Removes acked jobs past their retention, the longest past first.
delete from acked_job where id in (
    select id from acked_job where expires_at > ?1 and expires_at <= ?2 order by expires_at limit ?3
)
returning expires_at
