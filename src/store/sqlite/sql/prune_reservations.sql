-- ?1 floor, ?2 last ended_at, ?3 limit
-- Removes reservations that ended long ago, the longest past first.
delete from reservation where id in (
    select id from reservation indexed by reservation_ended
    where state > 1 and ended_at > ?1 and ended_at <= ?2 order by ended_at limit ?3
)
returning id, ended_at
