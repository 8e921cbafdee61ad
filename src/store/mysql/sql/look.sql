-- ? [[queue, tier], …]
-- The first waiting job of each; null where nothing waits. In the order of the whole index, since MySQL would else sort all that
-- waits there.
select v.queue_id, v.tier, (
        select r.ready_at
        from leasehold_ready r
        where r.queue_id = v.queue_id and r.tier = v.tier
        order by r.queue_id, r.tier, r.ready_at, r.id
        limit 1
    ) as ready_at,
    timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6)) as now
from json_table(?, '$[*]' columns (queue_id int path '$[0]', tier int path '$[1]')) v
