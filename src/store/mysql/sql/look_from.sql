-- ? queue, ? tier, ? floor, for each
-- The first waiting job of each from its floor on. A query for each, since no join begins in the middle of an index. The
-- last line is repeated.
(select r.queue_id, r.tier, r.ready_at, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6)) as now from leasehold_ready r force index (primary) where r.queue_id = ? and r.tier = ? and r.ready_at > ? order by r.ready_at, r.id limit 1)
