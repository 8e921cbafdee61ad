-- ?1 queue, ?2 now
update queue set closing_since = coalesce(closing_since, ?2), version = version + 1 where id = ?1
