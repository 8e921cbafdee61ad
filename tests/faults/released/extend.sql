-- Moves the ends of leases: $1 jobs, $2 leases, $3 durations in microseconds or null. See leasehold.extend_leases.
select e.outcomes, e.untils, e.cancels, e.extended_at
from leasehold.extend_leases($1::bigint[], $2::uuid[], $3::bigint[]) e
