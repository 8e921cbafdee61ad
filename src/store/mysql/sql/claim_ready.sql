-- ? queue, ? tier, ? floor, ? now, ? how many
-- The first ready jobs of a tier, locked; those that others hold are passed over.
select r.ready_at, r.id, r.attempt, r.lease_number,
    timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6)) as now
from leasehold_ready r force index (primary)
where r.queue_id = ? and r.tier = ? and r.ready_at > ? and r.ready_at <= ?
order by r.ready_at, r.id
limit ?
for update skip locked
