-- ? floor, ? now, ? how many
-- Leases that ended, the longest expired first.
select l.job_id, l.token, l.lease_until
from leasehold_lease l force index (lease_until)
where l.lease_until > ? and l.lease_until <= ?
order by l.lease_until
limit ?
