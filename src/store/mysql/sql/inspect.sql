-- ? [[place, job, lease in hexadecimal], …]
-- Those leases that hold.
select v.n, l.lease_until, j.cancel_requested,
    timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6)) as now
from json_table(?, '$[*]' columns (n int path '$[0]', id bigint path '$[1]', token varchar(32) path '$[2]')) v
straight_join leasehold_lease l force index (primary) on l.job_id = v.id and l.token = unhex(v.token)
straight_join leasehold_job j force index (primary) on j.id = v.id
