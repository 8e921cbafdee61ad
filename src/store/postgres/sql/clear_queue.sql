-- Removes keys of queue $1, $2 at most. See leasehold.clear_queue.
select leasehold.clear_queue($1::int, $2::int) as cleared
