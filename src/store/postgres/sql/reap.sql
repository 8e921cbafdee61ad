-- Takes leases away that ended after $1, $2 at most. See leasehold.reap_leases.
select r.jobs, r.leases, r.queues, r.deads, r.readied, r.next_floor from leasehold.reap_leases($1::timestamptz, $2::int) r
