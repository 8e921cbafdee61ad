-- ? replica, ? not seen for so long, ? first, ? last
-- Whether others are gone, or somebody wants jobs of these streams to be cancelled.
select exists (
    select p.id
    from leasehold_replica p force index (primary)
    where p.id >= 0 and p.id <> ?
        and p.seen_at < timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6)) - ?
) or exists (
    select c.job_id from leasehold_cancellation c force index (primary) where c.lease_stream between ? and ?
) as anything
