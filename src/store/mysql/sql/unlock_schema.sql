select release_lock(left(sha2(concat(database(), '/leasehold_schema_migration'), 256), 40)) as released
