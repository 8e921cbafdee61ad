-- ? floor, ? floor of arrivals
-- What time it is, and the number of a lease that ended, if any: were it in the index, MySQL would walk all of that.
-- Locks nothing, so that a pass that finds nothing is one statement. A server that was made a replica takes such a read, so it
-- says whether it may be written to.
select @@global.read_only or @@global.innodb_read_only as read_only,
    timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6)) as now,
    (
        select l.lease_number
        from leasehold_lease l force index (lease_until)
        where l.lease_until > ?
            and l.lease_until <= timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6))
        order by l.lease_until
        limit 1
    ) as found,
    (
        select a.id from leasehold_arrival a force index (primary) where a.id >= ? order by a.id limit 1
    ) as arrived
