-- ? queue, ? how many
-- Idempotency keys of a queue.
select k.queue_id, k.name from leasehold_idempotency_key k force index (primary) where k.queue_id = ? limit ?
