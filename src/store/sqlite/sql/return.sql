-- ?1 [[job, ready_at, whether the attempt counts, error], …]
-- Takes the leases off. Error: null keeps the one that is there, an empty one leaves none.
update job set
    lease_id = null, lease_until = null, lease_duration = null, lease_stream = null, ready_at = back.value ->> 1,
    attempt = max(attempt - iif(back.value ->> 2, 0, 1), 0),
    last_error = iif(back.value ->> 3 is null, last_error, nullif(back.value ->> 3, ''))
from json_each(?1) back
where job.id = back.value ->> 0
