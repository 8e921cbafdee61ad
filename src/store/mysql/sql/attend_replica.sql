-- ? replica, ? name, ? version, ? how long it runs
insert into leasehold_replica (id, name, version, started_at, seen_at)
select v.id, v.name, v.version, v.now - v.age, v.now
from (
    select ? as id, ? as name, ? as version, ? as age,
        timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6)) as now
) v
on duplicate key update name = v.name, version = v.version, seen_at = v.now
