-- ?1 [job, …]
delete from job where id in (select value from json_each(?1))
