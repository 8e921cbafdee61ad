-- ? queue, eight times, ? its name
-- One row for each kind of thing that is left, at READ UNCOMMITTED: what transactions have stored that are still open counts.
-- A job moves from left to right alone once no job of its queue is leased any more.
(select 1 as kind from leasehold_lease l force index (lease_queue) where l.queue_id = ? limit 1)
union all
(select 2 from leasehold_blocked b force index (primary) where b.queue_id = ? limit 1)
union all
(select 3 from leasehold_ready r force index (primary) where r.queue_id = ? limit 1)
union all
(select 4 from leasehold_dead_job d force index (dead_job_queue) where d.queue_id = ? limit 1)
union all
(select 5 from leasehold_acked_job a force index (acked_job_queue) where a.queue_id = ? limit 1)
union all
(select 6 from leasehold_idempotency_key k force index (primary) where k.queue_id = ? limit 1)
union all
(select 7 from leasehold_ordering_key o force index (primary) where o.queue_id = ? limit 1)
union all
(
    select 8
    from leasehold_arrival a force index (primary)
    where a.id > 0 and (a.queue_id = ? or a.queue_name = ?)
    limit 1
)
