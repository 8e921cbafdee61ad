-- Makes dead jobs $1 live again. See leasehold.redrive_jobs.
select r.jobs, r.readied, r.redriven_at as redriven_until, null::timestamptz as next_at, null::bigint as next_id
from leasehold.redrive_jobs($1::bigint[]) r
