-- Undoes grants $1 (jobs) with $2 (leases) that were never sent. See leasehold.give_back_leases.
select leasehold.give_back_leases($1::bigint[], $2::uuid[]) as undone
