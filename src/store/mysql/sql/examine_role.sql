-- Who we are, and what that user may do: everywhere, in this database, and with our tables.
select cast(current_user() as binary) as name, cast(database() as binary) as place, cast(p.privilege_type as binary) as privilege,
    p.everywhere
from (
    select u.grantee, u.privilege_type, 1 as everywhere from information_schema.user_privileges u
    union all
    select s.grantee, s.privilege_type, 0 from information_schema.schema_privileges s where database() like s.table_schema
    union all
    select t.grantee, t.privilege_type, 0
    from information_schema.table_privileges t
    where t.table_schema = database() and left(t.table_name, char_length('leasehold_')) = 'leasehold_'
) p
where p.grantee = concat('''', replace(current_user(), '@', '''@'''), '''')
