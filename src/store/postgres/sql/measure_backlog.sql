-- Live jobs of queue $1 and their payload bytes, up to $2 jobs. By the three indexes that together hold every live job.
select count(b.bytes) as jobs, coalesce(sum(b.bytes), 0)::bigint as bytes
from (
    select w.bytes
    from (
        (
            select octet_length(j.payload) as bytes
            from leasehold.job j
            where j.queue_id = $1::int and j.lease_id is null and not j.blocked
            limit $2::bigint
        )
        union all
        (
            select octet_length(j.payload)
            from leasehold.job j
            where j.queue_id = $1::int and j.blocked
            limit $2::bigint
        )
        union all
        (
            select octet_length(j.payload)
            from leasehold.job j
            where j.queue_id = $1::int and (j.lease_id is null)::int = 0
            limit $2::bigint
        )
    ) w
    limit $2::bigint
) b
