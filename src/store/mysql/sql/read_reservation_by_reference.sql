-- ? reference
-- A row for each of its lines.
select r.id, r.reference, r.state, r.created_at, r.expires_at, r.ended_at, r.content, r.jobs, r.commit_jobs, l.item,
    l.location, l.quantity
from leasehold_reservation r force index (primary)
straight_join leasehold_reservation_line l force index (primary) on l.reservation_id = r.id
where r.reference = ?
order by l.line
