-- ?1 [job, …]
delete from dead_job where id in (select value from json_each(?1))
