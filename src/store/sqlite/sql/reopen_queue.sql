-- ?1 queue
update queue set closing_since = null, version = version + 1 where id = ?1
