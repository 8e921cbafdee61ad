-- Queues with a time to live, from behind number $1 on, $2 at most.
select q.id from leasehold.queue q where q.time_to_live is not null and q.id > $1::int order by q.id limit $2::bigint
