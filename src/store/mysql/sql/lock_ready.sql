-- ? [[queue, tier, ready_at, job], …], the jobs locked by this transaction
-- Those of them that are ready or scheduled, locked; waits for claims that are under way.
select r.id, r.attempt, r.lease_number
from json_table(?, '$[*]' columns (
    queue_id int path '$[0]', tier int path '$[1]', ready_at bigint path '$[2]', id bigint path '$[3]'
)) v
straight_join leasehold_ready r force index (primary)
    on r.queue_id = v.queue_id and r.tier = v.tier and r.ready_at = v.ready_at and r.id = v.id
for update /*!80001 of r */
