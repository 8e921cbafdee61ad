-- Copies the jobs at these places to the acked ones, where their queues keep such. The places are locked, and a place may be
-- given twice.
create function leasehold.keep_acked(places tid[]) returns void language plpgsql as $$
begin
    insert into leasehold.acked_job (
        id, position, lease_number, enqueued_at, available_at, acked_at, expires_at, queue_id, attempt, max_attempts,
        priority, ordering_key, idempotency_key, content_type, traceparent, tracestate, headers, last_error, payload,
        caller
    )
    select j.id, j.position, j.lease_number, j.enqueued_at, j.available_at, clock_timestamp(),
        clock_timestamp() + q.acked_retention * interval '1 microsecond', j.queue_id, j.attempt, j.max_attempts,
        j.priority, j.ordering_key, j.idempotency_key, j.content_type, j.traceparent, j.tracestate, j.headers,
        j.last_error, j.payload, j.caller
    from (select distinct u.place from unnest(places) u (place)) u
    cross join lateral (
        select j.id, j.position, j.lease_number, j.enqueued_at, j.available_at, j.queue_id, j.attempt, j.max_attempts,
            j.priority, j.ordering_key, j.idempotency_key, j.content_type, j.traceparent, j.tracestate, j.headers,
            j.last_error, j.payload, j.caller
        from leasehold.job j
        where j.ctid = u.place
        offset 0
    ) j
    cross join lateral (
        select q.acked_retention
        from leasehold.queue q
        where q.id = j.queue_id and q.acked_retention is not null
        offset 0
    ) q;
end
$$;

-- Ends jobs, as leasehold.ack_leases does, and keeps them where their queues do. Where no queue does, that costs one look at
-- an empty index for the whole statement.
create function leasehold.ack_jobs(
    asked bigint[], leases uuid[], short_wait boolean, out outcomes smallint[], out queues int[], out readied int[]
) language plpgsql as $$
declare
    held bigint[];
    places tid[];
    done bigint[];
    done_queues int[];
    keyed bigint[];
    keyed_queues int[];
    keyed_keys text[];
    went_on boolean[];
begin
    select array_agg(u.n), array_agg(j.place)
    into held, places
    from unnest(asked, leases) with ordinality u (id, lease, n)
    cross join lateral (
        select j.ctid as place from leasehold.job j where j.id = u.id and j.lease_id is not distinct from u.lease for update skip locked
    ) j;

    if (
        select q.id from leasehold.queue q where q.acked_retention is not null and q.id > 0 order by q.id limit 1
    ) is not null then
        perform leasehold.keep_acked(places);
    end if;

    -- Given twice, the first decides and the second finds nothing any more.
    with ended as (
        delete from leasehold.job j
        using unnest(held, places) u (n, place)
        where j.ctid = u.place
        returning u.n, j.queue_id, j.ordering_key
    )
    select array_agg(e.n order by e.n), array_agg(e.queue_id order by e.n),
        array_agg(e.n) filter (where e.ordering_key is not null),
        array_agg(e.queue_id) filter (where e.ordering_key is not null),
        array_agg(e.ordering_key) filter (where e.ordering_key is not null)
    into done, done_queues, keyed, keyed_queues, keyed_keys
    from ended e;

    if coalesce(cardinality(done), 0) = cardinality(asked) then
        outcomes := array_fill(1::smallint, array[cardinality(asked)]);
        queues := done_queues;
    else
        outcomes := leasehold.explain_misses(asked, leases);
        queues := array_fill(null::int, array[cardinality(asked)]);
        for i in 1 .. coalesce(cardinality(done), 0) loop
            outcomes[done[i]] := 1;
            queues[done[i]] := done_queues[i];
        end loop;
    end if;

    if keyed is not null then
        if short_wait then
            perform set_config('lock_timeout', '50ms', true);
        end if;
        went_on := leasehold.advance_keys(keyed_queues, keyed_keys);
        readied := array_fill(null::int, array[cardinality(asked)]);
        for i in 1 .. cardinality(keyed) loop
            if went_on[i] then
                readied[keyed[i]] := keyed_queues[i];
            end if;
        end loop;
    end if;
end
$$;

-- Removes acked jobs past their retention. The floor to go on from, as in prune_dead_jobs.
create function leasehold.prune_acked_jobs(
    floor timestamptz, at_most int, out removed bigint, out next_floor timestamptz
) language plpgsql as $$
begin
    with taken as materialized (
        select a.ctid as place
        from leasehold.acked_job a
        where a.expires_at > floor and a.expires_at <= now()
        order by a.expires_at
        limit at_most
        for update skip locked
    ),
    gone as (
        delete from leasehold.acked_job a using taken t where a.ctid = t.place returning a.id
    )
    select count(g.id) into removed from gone g;

    next_floor := greatest(floor, least(now() - interval '1 minute', (
        select a.expires_at - interval '1 microsecond'
        from leasehold.acked_job a
        where a.expires_at > floor and a.expires_at <= now()
        order by a.expires_at
        limit 1
    )));
end
$$;

