-- Cancels jobs $1. See leasehold.cancel_jobs.
select c.outcomes, c.streams, c.readied from leasehold.cancel_jobs($1::bigint[]) c
