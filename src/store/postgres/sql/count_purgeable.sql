-- Jobs of queue $1: ready ($2), scheduled ($3), blocked behind a key ($4), dead ($5) and acked ($6) ones; of each state $8 rows
-- of an index at most, and how many of these were enqueued before $7, where that is given.
select r.walked, r.found
from (
    (
        select count(j.enqueued_at) as walked, count(j.enqueued_at) filter (where j.enqueued_at < $7::timestamptz or $7 is null) as found
        from (
            select j.enqueued_at
            from generate_series(9, 0, -1) level
            cross join lateral (
                select j.enqueued_at
                from leasehold.job j
                where $2::boolean
                    and j.queue_id = $1::int
                    and j.priority = level
                    and j.lease_id is null
                    and not j.blocked
                    and j.ready_at <= now()
                limit $8::bigint
            ) j
            limit $8::bigint
        ) j
    )
    union all
    (
        select count(j.enqueued_at), count(j.enqueued_at) filter (where j.enqueued_at < $7::timestamptz or $7 is null)
        from (
            select j.enqueued_at
            from generate_series(9, 0, -1) level
            cross join lateral (
                select j.enqueued_at
                from leasehold.job j
                where $3::boolean
                    and j.queue_id = $1::int
                    and j.priority = level
                    and j.lease_id is null
                    and not j.blocked
                    and j.ready_at > now()
                limit $8::bigint
            ) j
            limit $8::bigint
        ) j
    )
    union all
    (
        select count(j.enqueued_at), count(j.enqueued_at) filter (where j.enqueued_at < $7::timestamptz or $7 is null)
        from (
            select j.enqueued_at
            from leasehold.job j
            where $4::boolean and j.queue_id = $1::int and j.blocked and j.ordering_key >= ''
            limit $8::bigint
        ) j
    )
    union all
    (
        select count(d.enqueued_at), count(d.enqueued_at) filter (where d.enqueued_at < $7::timestamptz or $7 is null)
        from (
            select d.enqueued_at from leasehold.dead_job d where $5::boolean and d.queue_id = $1::int limit $8::bigint
        ) d
    )
    union all
    (
        select count(a.enqueued_at), count(a.enqueued_at) filter (where a.enqueued_at < $7::timestamptz or $7 is null)
        from (
            select a.enqueued_at from leasehold.acked_job a where $6::boolean and a.queue_id = $1::int limit $8::bigint
        ) a
    )
) r
