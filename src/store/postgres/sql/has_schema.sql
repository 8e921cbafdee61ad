-- Whether the database has our schema.
select to_regclass('leasehold.schema_migration') is not null as present
