-- How many of the next $9 dead jobs of queue $1 behind the one that died at $2 with id $3 died after $4 and before $5, have an
-- error that contains $6, ordering key $7 and caller $8, where these are given. next_at and next_id: where to go on behind.
with walked as materialized (
    select d.id, d.dead_at, row_number() over (order by d.dead_at, d.id) as n, d.fits
    from (
        select d.id, d.dead_at, coalesce(($6::text is null or strpos(d.last_error collate "C", $6::text) > 0)
                and ($7::text is null or d.ordering_key = $7::text)
                and ($8::text is null or d.caller = $8::text), false) as fits
        from leasehold.dead_job d
        where d.queue_id = $1::int
            and (d.dead_at, d.id) > (coalesce($2::timestamptz, '-infinity'), coalesce($3::bigint, 0))
            and d.dead_at > coalesce($4::timestamptz, '-infinity')
            and d.dead_at < coalesce($5::timestamptz, 'infinity')
        order by d.dead_at, d.id
        limit $9::bigint
    ) d
)
select count(1) filter (where w.fits) as jobs,
    (select w.dead_at from walked w where w.n = $9::bigint) as next_at,
    (select w.id from walked w where w.n = $9::bigint) as next_id
from walked w
