-- ?1 reservation, ?2 expires_at
update reservation_line set expires_at = ?2 where reservation_id = ?1
