-- ? [job, …]
-- What was claimed. The jobs are not locked: nobody changes one that was ready until now.
select j.id, j.priority, j.max_attempts, j.enqueued_at, j.available_at, j.ordering_key, j.idempotency_key, j.content_type,
    j.traceparent, j.tracestate, j.headers, j.last_error, j.payload
from json_table(?, '$[*]' columns (id bigint path '$')) v
straight_join leasehold_job j force index (primary) on j.id = v.id
