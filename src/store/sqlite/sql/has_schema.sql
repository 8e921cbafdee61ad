-- One row where the schema exists, none where it does not.
select 1 as present from sqlite_schema where type = 'table' and name = 'schema_migration'
