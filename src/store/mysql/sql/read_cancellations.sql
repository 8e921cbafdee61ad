-- ? first, ? last
select c.lease_stream, c.job_id
from leasehold_cancellation c force index (primary)
where c.lease_stream between ? and ?
limit 1000
for update skip locked
