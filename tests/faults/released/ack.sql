-- Ends jobs $1 under leases $2; $3: wait 50 ms at most for a key. See leasehold.ack_leases.
select a.outcomes, a.readied from leasehold.ack_leases($1::bigint[], $2::uuid[], $3::boolean) a
