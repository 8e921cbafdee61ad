-- Migrations that the database has, lowest first.
select m.number, m.name from leasehold_schema_migration m where m.number > 0 order by m.number
