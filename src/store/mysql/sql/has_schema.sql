-- One row where the schema exists, none where it does not.
select 1 as present
from information_schema.tables t
where t.table_schema = database() and t.table_name = 'leasehold_schema_migration'
