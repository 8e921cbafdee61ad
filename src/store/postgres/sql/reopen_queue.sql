-- Takes the mark of deletion off queue $1.
update leasehold.queue q
set closing_since = null, closing_xact = null, version = q.version + 1
where q.id = $1::int
returning q.id
