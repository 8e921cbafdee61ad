-- ? queue
-- One row where it is there and not being deleted.
select q.id from leasehold_queue q where q.id = ? and q.closing_since is null
