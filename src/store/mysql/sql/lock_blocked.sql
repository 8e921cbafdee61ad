-- ? [[place, queue, ordering key in hexadecimal, position, job], …] in the order of jobs
-- Those of them that still are blocked, the jobs locked first; waits for those who take one of them away.
select v.n, b.id
from json_table(?, '$[*]' columns (
    n int path '$[0]', queue_id int path '$[1]', ordering_key varchar(400) path '$[2]', position bigint path '$[3]',
    id bigint path '$[4]'
)) v
straight_join leasehold_job j force index (primary) on j.id = v.id
straight_join leasehold_blocked b force index (primary)
    on b.queue_id = v.queue_id and b.ordering_key = unhex(v.ordering_key) and b.position = v.position
for update /*!80001 of j, b */
