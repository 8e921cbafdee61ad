-- ?1 reference
-- Notes that it was asked for again.
update reservation set hits = hits + 1 where reference = ?1 returning id, content
