-- ? floor, ? now, ? how many
-- Dead jobs past their retention, the longest past first.
select d.id, d.expires_at
from leasehold_dead_job d force index (dead_job_expires)
where d.expires_at > ? and d.expires_at <= ?
order by d.expires_at
limit ?
