-- ?1 reservation, ?2 [job, …]
update reservation set commit_jobs = ?2 where id = ?1
