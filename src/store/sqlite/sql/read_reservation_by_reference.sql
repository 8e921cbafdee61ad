-- ?1 reference
-- A row for each of its lines.
select reservation.id, reservation.reference, reservation.state, reservation.created_at, reservation.expires_at,
    reservation.ended_at, reservation.jobs, reservation.commit_jobs, line.item, line.location, line.quantity
from reservation
cross join reservation_line line on line.reservation_id = reservation.id
where reservation.reference = ?1
order by line.line
