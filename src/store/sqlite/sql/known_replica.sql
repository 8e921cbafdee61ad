-- ?1 replica
select 1 as present from replica where id = ?1
