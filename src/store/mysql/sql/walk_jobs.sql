-- ? job to come behind, ? how many
-- Live jobs in the order of ids.
select j.id, j.queue_id, case
        when l.job_id is not null then 4
        when r.id is null then 3
        when r.ready_at > timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6)) then 2
        else 1
    end as state,
    j.ordering_key, j.caller, j.payload_bytes, coalesce(octet_length(j.headers), 0) + coalesce(octet_length(j.last_error), 0) as text_bytes
from leasehold_job j force index (primary)
left join leasehold_lease l force index (primary) on l.job_id = j.id
left join leasehold_ready r force index (primary)
    on r.queue_id = j.queue_id and r.tier = 9 - j.priority and r.ready_at = j.ready_at and r.id = j.id
where j.id > ?
order by j.id
limit ?
