-- ?1 [reservation, …]
update reservation_line set live = 0 where reservation_id in (select value from json_each(?1))
