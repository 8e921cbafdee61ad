-- ?1 first, ?2 last
delete from cancellation where lease_stream between ?1 and ?2
