-- ? how far to count
select count(*) as queues from (select q.id from leasehold_queue q where q.id > 0 limit ?) counted
