-- ? reservation
-- Waits for others who have it.
select r.reference, r.state, r.expires_at,
    timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6)) as now
from leasehold_reservation r force index (reservation_id)
where r.id = ?
for update
