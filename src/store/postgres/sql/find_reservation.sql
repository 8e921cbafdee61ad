-- The reservation with id $1, or where that is null, with reference $2. See leasehold.find_reservation.
select r.id, r.reference, r.state, r.created_at, r.expires_at, r.ended_at, r.jobs, r.commit_jobs, r.items, r.locations,
    r.quantities
from leasehold.find_reservation($1::bigint, $2::text) r
