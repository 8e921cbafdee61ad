-- ?1 queue, ?2 latest instant at which it may have been marked
-- Nobody stores a job without a look at the mark in the same transaction, so what is empty stays so.
delete from queue
where id = ?1 and closing_since <= ?2
    and not exists (select 1 from job indexed by job_ready where queue_id = ?1 and lease_id is null and blocked = 0)
    and not exists (select 1 from job indexed by job_blocked where queue_id = ?1 and blocked = 1)
    and not exists (select 1 from job indexed by job_leased where queue_id = ?1 and lease_id is not null)
    and not exists (select 1 from dead_job indexed by dead_job_queue where queue_id = ?1)
    and not exists (select 1 from acked_job indexed by acked_job_queue where queue_id = ?1)
    and not exists (select 1 from idempotency_key where queue_id = ?1)
