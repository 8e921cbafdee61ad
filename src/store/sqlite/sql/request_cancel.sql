-- ?1 [job, …]
update job set cancel_requested = 1 where id in (select value from json_each(?1))
