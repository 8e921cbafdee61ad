-- ? part of the error (an empty one is in every one), ? queue, ? and again ? dead_at and ? job to come behind, ? died after,
-- ? died before, ? died until then, ? how many
-- Dead jobs, those that died first first.
select d.id, d.dead_at, coalesce(locate(?, d.last_error) > 0, 0) as fits, d.ordering_key, d.caller, d.payload_bytes,
    coalesce(octet_length(d.headers), 0) + coalesce(octet_length(d.last_error), 0) as text_bytes
from leasehold_dead_job d force index (dead_job_queue)
where d.queue_id = ? and d.dead_at >= ? and (d.dead_at > ? or d.id > ?) and d.dead_at > ? and d.dead_at < ?
    and d.dead_at <= ?
order by d.dead_at, d.id
limit ?
