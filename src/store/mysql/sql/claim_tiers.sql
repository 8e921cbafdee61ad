-- For each tier: ? queue, ? floor. Tiers in which something is ready.
(
    select 0 as tier
    from leasehold_ready r force index (primary)
    where r.queue_id = ? and r.tier = 0 and r.ready_at > ?
        and r.ready_at <= timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6))
    limit 1
)
union all
(
    select 1 as tier
    from leasehold_ready r force index (primary)
    where r.queue_id = ? and r.tier = 1 and r.ready_at > ?
        and r.ready_at <= timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6))
    limit 1
)
union all
(
    select 2 as tier
    from leasehold_ready r force index (primary)
    where r.queue_id = ? and r.tier = 2 and r.ready_at > ?
        and r.ready_at <= timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6))
    limit 1
)
union all
(
    select 3 as tier
    from leasehold_ready r force index (primary)
    where r.queue_id = ? and r.tier = 3 and r.ready_at > ?
        and r.ready_at <= timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6))
    limit 1
)
union all
(
    select 4 as tier
    from leasehold_ready r force index (primary)
    where r.queue_id = ? and r.tier = 4 and r.ready_at > ?
        and r.ready_at <= timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6))
    limit 1
)
union all
(
    select 5 as tier
    from leasehold_ready r force index (primary)
    where r.queue_id = ? and r.tier = 5 and r.ready_at > ?
        and r.ready_at <= timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6))
    limit 1
)
union all
(
    select 6 as tier
    from leasehold_ready r force index (primary)
    where r.queue_id = ? and r.tier = 6 and r.ready_at > ?
        and r.ready_at <= timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6))
    limit 1
)
union all
(
    select 7 as tier
    from leasehold_ready r force index (primary)
    where r.queue_id = ? and r.tier = 7 and r.ready_at > ?
        and r.ready_at <= timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6))
    limit 1
)
union all
(
    select 8 as tier
    from leasehold_ready r force index (primary)
    where r.queue_id = ? and r.tier = 8 and r.ready_at > ?
        and r.ready_at <= timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6))
    limit 1
)
union all
(
    select 9 as tier
    from leasehold_ready r force index (primary)
    where r.queue_id = ? and r.tier = 9 and r.ready_at > ?
        and r.ready_at <= timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6))
    limit 1
)
