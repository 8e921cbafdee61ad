-- ?1 [[job, until], …]
-- The leases were found to hold in the same transaction, and no end is earlier than the one it replaces.
update job set lease_until = moved.value ->> 1
from json_each(?1) moved
where job.id = moved.value ->> 0
