-- What time it is.
select timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6)) as now
