-- ?1 reference
-- Notes that it was asked for again.
update stock_adjustment set hits = hits + 1 where reference = ?1 returning content
