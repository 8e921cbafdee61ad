-- This connection's number, and its end as the server sees it.
select cast(p.id as signed) as id, p.host as host from information_schema.processlist p where p.id = connection_id()
