-- Lease streams behind $1, in the order of their numbers, of replicas seen within the last $2 microseconds: those that ask for
-- queue $3 where it is given. $4 rows are looked at, $5 brought. next_id: where to go on behind; one row at least for its sake.
with walked as materialized (
    select s.id, row_number() over (order by s.id) as n, s.fits
    from (
        select s.id, $3::text is null or strpos(s.queues, ' ' || $3::text || ' ') > 0 as fits
        from leasehold.replica_stream s
        where s.id > $1::bigint
        order by s.id
        limit $4::bigint
    ) s
),
picked as materialized (
    select w.id, w.n from walked w where w.fits order by w.n limit $5::bigint
),
stop as (
    select case
        when (select count(1) from picked p) < (select count(1) from walked w where w.fits) then (select max(p.n) from picked p)
        when (select count(1) from walked w) >= $4::bigint then $4::bigint
    end as n
)
select (select w.id from walked w, stop s where w.n = s.n) as next_id,
    r.stream, r.replica, r.consumer, r.peer, r.stream_caller, r.queues, r.max_in_flight, r.in_flight, r.oldest_age,
    r.opened_at, r.seen_at
from stop
left join picked k on true
left join lateral (
    select s.id as stream, p.name as replica, s.consumer, s.peer, s.caller as stream_caller, s.queues, s.max_in_flight,
        s.in_flight, (extract(epoch from now() - s.oldest_lease_at) * 1000000)::bigint as oldest_age, s.opened_at, p.seen_at
    from leasehold.replica_stream s
    cross join lateral (
        select p.name, p.seen_at
        from leasehold.replica p
        where p.id = s.replica and p.seen_at > now() - $2::bigint * interval '1 microsecond'
        offset 0
    ) p
    where s.id = k.id
    offset 0
) r on true
order by k.n
