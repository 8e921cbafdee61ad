-- ?1 floor, ?2 now, ?3 limit
-- Removes idempotency keys past their retention, the longest past first.
delete from idempotency_key where rowid in (
    select rowid from idempotency_key where expires_at > ?1 and expires_at <= ?2 order by expires_at limit ?3
)
returning expires_at
