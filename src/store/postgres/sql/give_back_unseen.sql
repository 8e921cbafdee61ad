-- Undoes the grants of leases $1, whose jobs nobody knows. See leasehold.give_back_unseen.
select leasehold.give_back_unseen($1::uuid[]) as queues
