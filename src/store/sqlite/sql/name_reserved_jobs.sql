-- ?1 reservation, ?2 [job, …]
update reservation set jobs = ?2 where id = ?1
