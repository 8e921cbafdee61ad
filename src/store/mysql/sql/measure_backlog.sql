-- ? queue, ? jobs at most (each for the three places in which a live job can be), ? jobs at most
-- Live jobs and their payload bytes, counted no further than asked.
select count(*) as jobs, cast(coalesce(sum(waiting.bytes), 0) as signed) as bytes
from (
    (
        select j.payload_bytes as bytes
        from leasehold_ready r force index (primary)
        straight_join leasehold_job j force index (primary) on j.id = r.id
        where r.queue_id = ?
        limit ?
    )
    union all
    (
        select j.payload_bytes
        from leasehold_blocked b force index (primary)
        straight_join leasehold_job j force index (primary) on j.id = b.id
        where b.queue_id = ?
        limit ?
    )
    union all
    (
        select j.payload_bytes
        from leasehold_lease l force index (lease_queue)
        straight_join leasehold_job j force index (primary) on j.id = l.job_id
        where l.queue_id = ?
        limit ?
    )
    limit ?
) waiting
