-- ?1 queue, ?2 limit
-- Removes idempotency keys.
delete from idempotency_key where rowid in (
    select rowid from idempotency_key where queue_id = ?1 order by key limit ?2
)
