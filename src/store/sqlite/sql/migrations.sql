-- Migrations that the database has, lowest first.
select number, name from schema_migration order by number
