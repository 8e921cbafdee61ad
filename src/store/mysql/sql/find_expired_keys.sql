-- ? floor, ? now, ? how many
-- Idempotency keys past their retention, the longest past first.
select k.queue_id, k.name, k.expires_at
from leasehold_idempotency_key k force index (idempotency_key_expires)
where k.expires_at > ? and k.expires_at <= ?
order by k.expires_at
limit ?
