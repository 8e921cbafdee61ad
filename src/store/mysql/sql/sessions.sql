-- All sessions of the server that this user may see; statements up to 4,096 characters.
select cast(p.id as signed) as id, p.id = connection_id() as observer, p.db is not null and p.db = database() as here, p.command as command,
    p.user = substring_index(user(), '@', 1) as of_own_user, cast(p.user as binary) as role, cast(p.host as binary) as host,
    cast(p.time as signed) as seconds, cast(left(p.info, 4096) as binary) as statement, coalesce(char_length(p.info) > 4096, 0) as cut,
    timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6)) as now,
    cast(@@global.max_connections as signed) as max_connections
from information_schema.processlist p
