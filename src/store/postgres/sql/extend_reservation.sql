-- Moves the expiry of reservation $1 to $2 microseconds from now, never back. See leasehold.extend_reservation.
select r.id, r.reference, r.state, r.created_at, r.expires_at, r.ended_at, r.jobs, r.commit_jobs, r.items, r.locations,
    r.quantities
from leasehold.extend_reservation($1::bigint, $2::bigint) r
