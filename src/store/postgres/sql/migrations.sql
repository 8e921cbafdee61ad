-- Migrations that the database has. Only where leasehold.schema_migration exists.
select m.number, m.name from leasehold.schema_migration m order by m.number
