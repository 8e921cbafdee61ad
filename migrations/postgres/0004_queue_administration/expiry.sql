-- Buries jobs that have been ready for longer than their queues' time to live, at most so many, of these queues from these
-- floors on. Says how many died, in which of the queues the next job of a key became ready, and the floors to go on from:
-- below every such job that is left, and ten seconds before the time to live, for jobs that became ready in transactions
-- which had not committed yet.
create function leasehold.expire_ready_jobs(
    queues int[], floors timestamptz[], at_most int,
    out dead bigint, out readied int[], out next_floors timestamptz[]
) language plpgsql as $$
declare
    places tid[];
    keyed_queues int[];
    keyed_keys text[];
    went_on boolean[];
begin
    -- One level at a time and no order outside of the lateral, which would lock more than is taken: as a claim does it.
    select array_agg(w.place)
    into places
    from (
        select l.place
        from unnest(queues, floors) u (queue_id, floor)
        cross join lateral (
            select q.time_to_live
            from leasehold.queue q
            where q.id = u.queue_id and q.time_to_live is not null
            offset 0
        ) q
        cross join generate_series(9, 0, -1) level
        cross join lateral (
            select j.ctid as place
            from leasehold.job j
            where j.queue_id = u.queue_id
                and j.priority = level
                and j.lease_id is null
                and not j.blocked
                and j.ready_at > u.floor
                and j.ready_at <= now() - q.time_to_live * interval '1 microsecond'
            order by j.ready_at, j.id
            limit at_most
            for update skip locked
        ) l
        limit at_most
    ) w;

    dead := 0;
    readied := '{}';
    if places is not null then
        with removed as (
            delete from leasehold.job j
            where j.ctid = any (places)
            returning j.id, j.position, j.lease_number, j.enqueued_at, j.available_at, j.queue_id, j.attempt,
                j.max_attempts, j.priority, j.ordering_key, j.idempotency_key, j.content_type, j.traceparent, j.tracestate,
                j.headers, j.payload, j.caller
        ),
        buried as (
            insert into leasehold.dead_job (
                id, position, lease_number, enqueued_at, available_at, dead_at, expires_at, queue_id, attempt,
                max_attempts, priority, ordering_key, idempotency_key, content_type, traceparent, tracestate, headers,
                last_error, payload, caller
            )
            select r.id, r.position, r.lease_number, r.enqueued_at, r.available_at, clock_timestamp(),
                clock_timestamp() + (
                    select q.dead_retention from leasehold.queue q where q.id = r.queue_id
                ) * interval '1 microsecond',
                r.queue_id, r.attempt, r.max_attempts, r.priority, r.ordering_key, r.idempotency_key, r.content_type,
                r.traceparent, r.tracestate, r.headers, 'time to live is over', r.payload, r.caller
            from removed r
        )
        select count(1), array_agg(r.queue_id) filter (where r.ordering_key is not null),
            array_agg(r.ordering_key) filter (where r.ordering_key is not null)
        into dead, keyed_queues, keyed_keys
        from removed r;
    end if;
    if keyed_queues is not null then
        went_on := leasehold.advance_keys(keyed_queues, keyed_keys);
        select coalesce(array_agg(distinct u.queue_id), '{}')
        into readied
        from unnest(keyed_queues, went_on) u (queue_id, went_on)
        where u.went_on;
    end if;

    select array_agg(greatest(u.floor, least(
            now() - q.time_to_live * interval '1 microsecond' - interval '10 seconds',
            w.first - interval '1 microsecond'
        )) order by u.n)
    into next_floors
    from unnest(queues, floors) with ordinality u (queue_id, floor, n)
    left join lateral (select q.time_to_live from leasehold.queue q where q.id = u.queue_id offset 0) q on true
    left join lateral (
        select min(l.ready_at) as first
        from generate_series(9, 0, -1) level
        cross join lateral (
            select j.ready_at
            from leasehold.job j
            where j.queue_id = u.queue_id
                and j.priority = level
                and j.lease_id is null
                and not j.blocked
                and j.ready_at > u.floor
                and j.ready_at <= now() - q.time_to_live * interval '1 microsecond'
            order by j.ready_at, j.id
            limit 1
        ) l
    ) w on true;
end
$$;

