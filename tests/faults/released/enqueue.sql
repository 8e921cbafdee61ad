-- Stores jobs without keys, all or none. One array per column, all of one length:
-- $1 queues, $2 payloads, $3 content types, $4 headers, $5 priorities, $6 delays in microseconds or null, $7 starts or null,
-- $8 attempts, $9 traceparents, $10 tracestates.
-- Ids rise with the order of the arrays, since a row's id is drawn as it is stored.
with stored as (
    insert into leasehold.job (
        enqueued_at, available_at, ready_at, queue_id, max_attempts, priority, content_type, traceparent, tracestate,
        headers, payload
    )
    select clock_timestamp(),
        coalesce(u.start, clock_timestamp() + coalesce(u.delay, 0) * interval '1 microsecond'),
        greatest(u.start, clock_timestamp() + coalesce(u.delay, 0) * interval '1 microsecond'),
        u.queue_id, u.attempts, u.priority, u.content_type, u.traceparent, u.tracestate, u.header, u.payload
    from unnest(
        $1::int[], $2::bytea[], $3::text[], $4::text[], $5::smallint[], $6::bigint[], $7::timestamptz[], $8::int[],
        $9::text[], $10::text[]
    ) with ordinality u (
        queue_id, payload, content_type, header, priority, delay, start, attempts, traceparent, tracestate, n
    )
    order by u.n
    returning id, ready_at
)
select array_agg(s.id) as ids, array_agg(s.ready_at) as ready_ats, clock_timestamp() as stored_at
from stored s
