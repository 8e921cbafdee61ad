-- Removes queue $1 where it has been closing for $2 microseconds, nobody can store a job in it who did not see that, and
-- nothing of it is left. A job that moves from one state to another meanwhile is seen in one of them.
delete from leasehold.queue q
where q.id = $1::int
    and q.closing_since <= now() - $2::bigint * interval '1 microsecond'
    and q.closing_xact < pg_snapshot_xmin(pg_current_snapshot())::text::bigint
    and (
        select j.id
        from leasehold.job j
        where j.queue_id = $1::int and j.lease_id is null and not j.blocked
        limit 1
    ) is null
    and (select j.id from leasehold.job j where j.queue_id = $1::int and j.blocked limit 1) is null
    and (select j.id from leasehold.job j where j.queue_id = $1::int and (j.lease_id is null)::int = 0 limit 1) is null
    and (select d.id from leasehold.dead_job d where d.queue_id = $1::int limit 1) is null
    and (select a.id from leasehold.acked_job a where a.queue_id = $1::int limit 1) is null
    and (select k.job_id from leasehold.idempotency_key k where k.queue_id = $1::int limit 1) is null
    and (select o.head from leasehold.ordering_key o where o.queue_id = $1::int limit 1) is null
    and (select a.id from leasehold.arrival a where a.queue_name = q.name limit 1) is null
returning q.id
