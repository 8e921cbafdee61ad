-- ?1 queue
-- One row where it exists and is not being deleted.
select 1 as present from queue where id = ?1 and closing_since is null
