-- ?1 first, ?2 last
delete from replica_stream where id between ?1 and ?2
