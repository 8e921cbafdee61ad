-- ?1 replica
delete from replica where id = ?1
