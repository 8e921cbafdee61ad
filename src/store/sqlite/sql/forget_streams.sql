-- ?1 [stream, …]
delete from replica_stream where id in (select value from json_each(?1))
