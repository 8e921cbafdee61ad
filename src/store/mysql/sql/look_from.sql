-- ? [[queue, tier], …] for those that are looked at from the beginning; ? queue, ? tier, ? floor, for each other
-- The first waiting job of each, null or nothing where nothing waits. A query for each that has a floor, since no join begins in
-- the middle of an index. Orders are by the whole index where MySQL would else sort all that waits. The last line is repeated.
(
    select v.queue_id, v.tier, (
            select r.ready_at
            from leasehold_ready r
            where r.queue_id = v.queue_id and r.tier = v.tier
            order by r.queue_id, r.tier, r.ready_at, r.id
            limit 1
        ) as ready_at,
        timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6)) as now
    from json_table(?, '$[*]' columns (queue_id int path '$[0]', tier int path '$[1]')) v
)
union all
(select r.queue_id, r.tier, r.ready_at, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6)) as now from leasehold_ready r force index (primary) where r.queue_id = ? and r.tier = ? and r.ready_at > ? order by r.ready_at, r.id limit 1)
