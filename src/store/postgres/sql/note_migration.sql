-- Notes that migration $1 named $2 was applied.
insert into leasehold.schema_migration (number, name) values ($1::int, $2::text)
