-- ?1 [reservation, …]
delete from reservation_job where reservation_id in (select value from json_each(?1))
