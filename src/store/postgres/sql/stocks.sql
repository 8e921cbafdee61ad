-- Stocks of item $1 at locations behind $2, $3 at most. What is held past its time counts as free.
select s.item, s.location, (s.on_hand + d.on_hand)::bigint as on_hand, (s.held + d.held - l.units)::bigint as held
from (
    select s.item, s.location, s.on_hand, s.held, leasehold.delta_floor(s.delta_floor, s.xmin) as delta_floor
    from leasehold.stock s
    where s.item = $1::text and s.location > $2::text
    order by s.location
    limit $3::int
) s
cross join lateral (
    select coalesce(sum(d.on_hand), 0) as on_hand, coalesce(sum(d.held), 0) as held
    from leasehold.stock_delta d
    where d.item = s.item and d.location = s.location and d.xact >= s.delta_floor
) d
cross join lateral (
    select coalesce(sum(l.quantity), 0) as units
    from leasehold.reservation_line l
    where l.item = s.item and l.location = s.location and l.live and l.expires_at <= now()
) l
order by s.location
