-- The settings named $1 as they hold for this session; those that this version does not know are left out.
select s.name, s.setting as value from pg_settings s where s.name = any($1::text[])
