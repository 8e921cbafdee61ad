-- ?1 number to come after, ?2 limit
select id from queue where time_to_live is not null and id > ?1 order by id limit ?2
