-- Marks queue $1 as being deleted, from this transaction on where it is not so already.
update leasehold.queue q
set closing_since = coalesce(q.closing_since, clock_timestamp()),
    closing_xact = coalesce(q.closing_xact, pg_current_xact_id()::text::bigint),
    version = q.version + 1
where q.id = $1::int
returning q.id
