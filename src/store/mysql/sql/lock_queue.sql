-- ? queue, ? latest instant at which it may have been marked
select q.name from leasehold_queue q force index (primary) where q.id = ? and q.closing_since <= ? for update
