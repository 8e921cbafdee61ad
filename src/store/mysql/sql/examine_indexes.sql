-- Indexes on our tables.
select distinct cast(substr(s.table_name, 1 + char_length('leasehold_')) as binary) as table_name,
    cast(s.index_name as binary) as index_name
from information_schema.statistics s
where s.table_schema = database() and left(s.table_name, char_length('leasehold_')) = 'leasehold_'
order by 1, 2
