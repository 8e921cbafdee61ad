-- Takes leases away that ended after $1, $2 at most. See leasehold.reap_leases. Also looks whether anything arrived from $3 on, and
-- whether the server may be written to: one that was demoted finds nothing to do without an error, like one that is idle.
select r.jobs, r.leases, r.queues, r.deads, r.readied, r.next_floor,
    exists (select from leasehold.arrival a where a.xact >= $3::bigint) as arrived,
    current_setting('transaction_read_only')::boolean as read_only
from leasehold.reap_leases($1::timestamptz, $2::int) r
