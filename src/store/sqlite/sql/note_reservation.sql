-- ?1 reservation
update reservation set hits = hits + 1 where id = ?1
