-- ? floor
-- The first arrival. At READ UNCOMMITTED those of transactions that are still open count.
select a.id from leasehold_arrival a force index (primary) where a.id >= ? order by a.id limit 1
