-- ? queue, ? job to come behind, ? how many
-- Acked jobs of a queue in the order of ids.
select a.id, a.queue_id, 6 as state, a.ordering_key, a.caller, a.payload_bytes,
    coalesce(octet_length(a.headers), 0) + coalesce(octet_length(a.last_error), 0) as text_bytes
from leasehold_acked_job a force index (acked_job_queue)
where a.queue_id = ? and a.id > ?
order by a.id
limit ?
