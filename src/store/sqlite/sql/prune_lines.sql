-- ?1 [reservation, …]
delete from reservation_line where reservation_id in (select value from json_each(?1))
