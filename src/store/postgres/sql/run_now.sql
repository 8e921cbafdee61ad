-- Makes job $1 ready. See leasehold.run_job_now.
select r.outcome, r.queue from leasehold.run_job_now($1::bigint) r
