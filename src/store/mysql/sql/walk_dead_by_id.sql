-- ? job to come behind, ? how many
-- Dead jobs in the order of ids.
select d.id, d.queue_id, 5 as state, d.ordering_key, d.caller, d.payload_bytes,
    coalesce(octet_length(d.headers), 0) + coalesce(octet_length(d.last_error), 0) as text_bytes
from leasehold_dead_job d force index (primary)
where d.id > ?
order by d.id
limit ?
