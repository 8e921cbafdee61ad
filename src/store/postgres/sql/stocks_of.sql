-- The stocks of keys $1 (items), $2 (locations), by their places from 1 on. What is held past its time counts as free.
select k.n, (s.on_hand + d.on_hand)::bigint as on_hand, (s.held + d.held - l.units)::bigint as held
from unnest($1::text[], $2::text[]) with ordinality k (item, location, n)
cross join lateral (
    select s.on_hand, s.held, leasehold.delta_floor(s.delta_floor, s.xmin) as delta_floor
    from leasehold.stock s
    where s.item = k.item and s.location = k.location
    offset 0
) s
cross join lateral (
    select coalesce(sum(d.on_hand), 0) as on_hand, coalesce(sum(d.held), 0) as held
    from leasehold.stock_delta d
    where d.item = k.item and d.location = k.location and d.xact >= s.delta_floor
) d
cross join lateral (
    select coalesce(sum(l.quantity), 0) as units
    from leasehold.reservation_line l
    where l.item = k.item and l.location = k.location and l.live and l.expires_at <= now()
) l
