-- ? [lease in hexadecimal, …]
-- Jobs under these leases, expired or not. Runs after a claim whose answer was lost, so a walk over all leases will do.
select l.job_id, l.token
from leasehold_lease l force index (lease_until)
straight_join json_table(?, '$[*]' columns (token varchar(32) path '$')) v on l.token = unhex(v.token)
where l.lease_until > 0
