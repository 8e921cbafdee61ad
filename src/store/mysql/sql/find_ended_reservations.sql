-- ? floor, ? last ended_at, ? how many
select r.id, r.ended_at
from leasehold_reservation r force index (reservation_ended)
where r.ended_at > ? and r.ended_at <= ?
order by r.ended_at
limit ?
