-- ?1 number, ?2 name, ?3 now
insert into schema_migration (number, name, applied_at) values (?1, ?2, ?3)
