-- ? floor
-- What time it is, and whether a lease ended. Locks nothing, so that a pass that finds nothing is one statement.
select timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6)) as now,
    exists (
        select 1
        from leasehold_lease l force index (lease_until)
        where l.lease_until > ?
            and l.lease_until <= timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6))
    ) as found
