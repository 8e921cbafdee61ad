-- ? number, ? name
insert into leasehold_schema_migration (number, name, applied_at)
values (?, ?, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6)))
