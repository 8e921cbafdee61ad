-- Queues whose names begin with $1 and come after $2, by name, $3 at most. No character of a name comes after ~.
select q.id, q.name, q.paused, q.disabled_reason, q.lease_duration, q.max_attempts, q.backoff_base, q.backoff_cap,
    q.idempotency_retention, q.dead_retention, q.max_backlog_jobs, q.max_backlog_bytes, q.time_to_live, q.acked_retention,
    q.version, q.closing_since is not null as closing
from leasehold.queue q
where q.name > $2::text and q.name >= $1::text and q.name < $1::text || '~'
order by q.name
limit $3::bigint
