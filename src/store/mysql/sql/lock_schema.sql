-- ? seconds to wait at most. 1 where nobody else migrates this schema; held until released or until the connection ends.
select get_lock(left(sha2(concat(database(), '/leasehold_schema_migration'), 256), 40), ?) as mine
