-- Tables and indexes of the file; those that SQLite makes by itself are left out.
select type, name, tbl_name as table_name from sqlite_schema
where type in ('table', 'index') and name not like 'sqlite~_%' escape '~'
limit 1000
