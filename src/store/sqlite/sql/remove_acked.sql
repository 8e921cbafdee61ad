-- ?1 [job, …]
delete from acked_job where id in (select value from json_each(?1))
