-- Our tables, by estimate.
select cast(substr(t.table_name, 1 + char_length('leasehold_')) as binary) as table_name,
    cast(coalesce(t.table_rows, 0) as signed) as live_rows,
    cast(coalesce(t.data_length, 0) + coalesce(t.index_length, 0) as signed) as bytes
from information_schema.tables t
where t.table_schema = database() and t.table_type = 'BASE TABLE'
    and left(t.table_name, char_length('leasehold_')) = 'leasehold_'
order by t.table_name
