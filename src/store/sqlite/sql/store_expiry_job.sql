-- ?1 reservation, ?2 place, ?3 now
insert into job (
    id, queue_id, priority, available_at, ready_at, position, ordering_key, blocked, max_attempts, enqueued_at, content_type,
    headers, traceparent, tracestate, payload, caller
)
select numbered.id, kept.queue_id, kept.priority, ?3 + kept.delay, ?3 + kept.delay,
    iif(kept.ordering_key is null, null, numbered.id), kept.ordering_key,
    kept.ordering_key is not null and exists (
        select 1 from job other where other.queue_id = kept.queue_id and other.ordering_key = kept.ordering_key
    ),
    kept.max_attempts, ?3, kept.content_type, kept.headers, kept.traceparent, kept.tracestate, kept.payload, kept.caller
from (select coalesce((select seq from sqlite_sequence where name = 'job'), 0) + 1 as id) numbered
cross join reservation_job kept on kept.reservation_id = ?1 and kept.place = ?2
returning queue_id, blocked
