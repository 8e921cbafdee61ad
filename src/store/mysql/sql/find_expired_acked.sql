-- ? floor, ? now, ? how many
-- Acked jobs past their retention, the longest past first.
select a.id, a.expires_at
from leasehold_acked_job a force index (acked_job_expires)
where a.expires_at > ? and a.expires_at <= ?
order by a.expires_at
limit ?
