-- ?1 reservation, ?2 expires_at
update reservation set expires_at = ?2 where id = ?1 and state = 1 and expires_at < ?2
