-- Gives jobs back or buries them: $1 jobs, $2 leases, $3 actions, $4 delays, $5 fractions, $6 errors, $7 wait 50 ms at most
-- for a key. See leasehold.nack_jobs.
select a.outcomes, a.deads, a.queues, a.ready_ats, a.readied, a.settled_at
from leasehold.nack_jobs(
    $1::bigint[], $2::uuid[], $3::smallint[], $4::bigint[], $5::float8[], $6::text[], $7::boolean
) a
