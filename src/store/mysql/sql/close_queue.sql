-- ? queue
update leasehold_queue
set closing_since = coalesce(closing_since, timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6))),
    version = version + 1
where id = ?
