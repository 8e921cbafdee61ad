-- ?1 [reservation, …], ?2 state, ?3 now
-- Ends those that are held.
update reservation set state = ?2, ended_at = ?3
where id in (select value from json_each(?1)) and state = 1
returning id, expires_at
