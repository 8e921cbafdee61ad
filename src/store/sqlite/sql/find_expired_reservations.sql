-- ?1 floor, ?2 now, ?3 limit, ?4 most that their jobs may weigh together
-- Reservations that are held past their time, the longest overdue first. Those whose jobs are too many with those before them
-- are left out; how many were found says whether any were.
select id, expires_at, found
from (
    select id, expires_at, count(*) over () as found,
        sum(expiry_bytes) over (order by expires_at, id) as weight, row_number() over (order by expires_at, id) as place
    from (
        select id, expires_at, expiry_bytes
        from reservation indexed by reservation_live
        where state = 1 and expires_at > ?1 and expires_at <= ?2
        order by expires_at, id
        limit ?3
    )
)
where weight <= ?4 or place = 1
