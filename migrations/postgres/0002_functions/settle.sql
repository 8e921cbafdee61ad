-- Why items decided nothing, by code: 2 gone, 3 lease lost, 4 busy. Looked at after the act, so what it removed is gone.
create function leasehold.explain_misses(asked bigint[], leases uuid[]) returns smallint[] language plpgsql as $$
begin
    return (
        select array_agg(
            case when j.lease_id = u.lease then 4 when j.id is not null or d.id is not null then 3 else 2 end::smallint
            order by u.n
        )
        from unnest(asked, leases) with ordinality u (id, lease, n)
        left join lateral (select j.id, j.lease_id from leasehold.job j where j.id = u.id offset 0) j on true
        left join lateral (select d.id from leasehold.dead_job d where d.id = u.id offset 0) d on true
    );
end
$$;

-- Ends jobs. Outcome codes: 1 done, else as explain_misses has them. Where a key went on, readied names the queue.
create function leasehold.ack_leases(
    asked bigint[], leases uuid[], short_wait boolean, out outcomes smallint[], out readied int[]
) language plpgsql as $$
declare
    held bigint[];
    places tid[];
    done bigint[];
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

    -- Given twice, the first decides and the second finds nothing any more.
    with ended as (
        delete from leasehold.job j
        using unnest(held, places) u (n, place)
        where j.ctid = u.place
        returning u.n, j.queue_id, j.ordering_key
    )
    select array_agg(e.n),
        array_agg(e.n) filter (where e.ordering_key is not null),
        array_agg(e.queue_id) filter (where e.ordering_key is not null),
        array_agg(e.ordering_key) filter (where e.ordering_key is not null)
    into done, keyed, keyed_queues, keyed_keys
    from ended e;

    if coalesce(cardinality(done), 0) = cardinality(asked) then
        outcomes := array_fill(1::smallint, array[cardinality(asked)]);
    else
        outcomes := leasehold.explain_misses(asked, leases);
        for i in 1 .. coalesce(cardinality(done), 0) loop
            outcomes[done[i]] := 1;
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

-- Gives jobs back or moves them to the dead jobs. Actions: 1 retry, 2 release, 3 reject. Where there is no delay, a retry
-- waits for the queue's back-off at the given fraction of its ceiling: base, doubled with each attempt, up to the cap.
create function leasehold.nack_leases(
    asked bigint[], leases uuid[], actions smallint[], delays bigint[], fractions float8[], errors text[],
    short_wait boolean,
    out outcomes smallint[], out deads boolean[], out ready_ats timestamptz[], out readied int[], out settled_at timestamptz
) language plpgsql as $$
declare
    held bigint[];
    places tid[];
    dying boolean[];
    dues timestamptz[];
    retentions bigint[];
    done bigint[];
    done_dead boolean[];
    done_ready timestamptz[];
    done_queues int[];
    keyed bigint[];
    keyed_queues int[];
    keyed_keys text[];
    went_on boolean[];
begin
    settled_at := clock_timestamp();
    select array_agg(h.n), array_agg(h.place), array_agg(h.dies), array_agg(h.due), array_agg(h.dead_retention)
    into held, places, dying, dues, retentions
    from (
        -- Given twice, the first decides.
        select distinct on (j.place) u.n, j.place, q.dead_retention,
            u.action = 3 or u.action = 1 and j.attempt >= j.max_attempts as dies,
            settled_at + coalesce(
                u.delay::float8,
                case when u.action = 1 then least(
                    q.backoff_cap::float8, q.backoff_base * power(2::float8, least(greatest(j.attempt - 1, 0), 31))
                ) * u.fraction end,
                0
            ) * interval '1 microsecond' as due
        from unnest(asked, leases, actions, delays, fractions)
            with ordinality u (id, lease, action, delay, fraction, n)
        cross join lateral (
            select j.ctid as place, j.queue_id, j.attempt, j.max_attempts
            from leasehold.job j
            where j.id = u.id and j.lease_id is not distinct from u.lease
            for update skip locked
        ) j
        cross join lateral (
            select q.backoff_base, q.backoff_cap, q.dead_retention
            from leasehold.queue q
            where q.id = j.queue_id
            offset 0
        ) q
        order by j.place, u.n
    ) h;

    with given as materialized (
        select u.n, u.place, u.dies, u.due, u.retention, actions[u.n] as action, nullif(errors[u.n], '') as error
        from unnest(held, places, dying, dues, retentions) u (n, place, dies, due, retention)
    ),
    returned as (
        update leasehold.job j
        set lease_id = null, lease_until = null, lease_duration = null,
            attempt = case when g.action = 2 then greatest(j.attempt - 1, 0) else j.attempt end,
            ready_at = greatest(j.available_at, g.due),
            last_error = case when g.action = 2 then coalesce(g.error, j.last_error) else g.error end
        from given g
        where j.ctid = g.place and not g.dies
        returning g.n, j.queue_id, j.ready_at
    ),
    removed as (
        delete from leasehold.job j
        using given g
        where j.ctid = g.place and g.dies
        returning g.n, g.error, g.retention, j.id, j.position, j.lease_number, j.enqueued_at, j.available_at, j.queue_id,
            j.attempt, j.max_attempts, j.priority, j.ordering_key, j.idempotency_key, j.content_type, j.traceparent,
            j.tracestate, j.headers, j.payload
    ),
    buried as (
        insert into leasehold.dead_job (
            id, position, lease_number, enqueued_at, available_at, dead_at, expires_at, queue_id, attempt, max_attempts,
            priority, ordering_key, idempotency_key, content_type, traceparent, tracestate, headers, last_error, payload
        )
        select r.id, r.position, r.lease_number, r.enqueued_at, r.available_at, clock_timestamp(),
            clock_timestamp() + r.retention * interval '1 microsecond', r.queue_id, r.attempt, r.max_attempts,
            r.priority, r.ordering_key, r.idempotency_key, r.content_type, r.traceparent, r.tracestate, r.headers,
            r.error, r.payload
        from removed r
    ),
    settled as (
        select r.n, false as dead, r.ready_at, r.queue_id, null::text as ordering_key from returned r
        union all
        select r.n, true, null, r.queue_id, r.ordering_key from removed r
    )
    select array_agg(s.n), array_agg(s.dead), array_agg(s.ready_at), array_agg(s.queue_id),
        array_agg(s.n) filter (where s.ordering_key is not null),
        array_agg(s.queue_id) filter (where s.ordering_key is not null),
        array_agg(s.ordering_key) filter (where s.ordering_key is not null)
    into done, done_dead, done_ready, done_queues, keyed, keyed_queues, keyed_keys
    from settled s;

    deads := array_fill(false, array[cardinality(asked)]);
    ready_ats := array_fill(null::timestamptz, array[cardinality(asked)]);
    readied := array_fill(null::int, array[cardinality(asked)]);
    if coalesce(cardinality(done), 0) = cardinality(asked) then
        outcomes := array_fill(1::smallint, array[cardinality(asked)]);
    else
        outcomes := leasehold.explain_misses(asked, leases);
    end if;
    for i in 1 .. coalesce(cardinality(done), 0) loop
        outcomes[done[i]] := 1;
        if done_dead[i] then
            deads[done[i]] := true;
        else
            ready_ats[done[i]] := done_ready[i];
            readied[done[i]] := done_queues[i];
        end if;
    end loop;

    if keyed is not null then
        if short_wait then
            perform set_config('lock_timeout', '50ms', true);
        end if;
        went_on := leasehold.advance_keys(keyed_queues, keyed_keys);
        for i in 1 .. cardinality(keyed) loop
            if went_on[i] then
                readied[keyed[i]] := keyed_queues[i];
            end if;
        end loop;
    end if;
end
$$;

-- Moves the ends of leases, to what they were granted for where no duration is given; never shortens one.
create function leasehold.extend_leases(
    asked bigint[], leases uuid[], durations bigint[],
    out outcomes smallint[], out untils timestamptz[], out cancels boolean[], out extended_at timestamptz
) language plpgsql as $$
declare
    held bigint[];
    places tid[];
    moved_untils timestamptz[];
    moved_cancels boolean[];
begin
    select array_agg(u.n), array_agg(j.place)
    into held, places
    from unnest(asked, leases) with ordinality u (id, lease, n)
    cross join lateral (
        select j.ctid as place from leasehold.job j where j.id = u.id and j.lease_id is not distinct from u.lease for update skip locked
    ) j;

    if coalesce(cardinality(held), 0) = cardinality(asked) then
        outcomes := array_fill(1::smallint, array[cardinality(asked)]);
    else
        outcomes := leasehold.explain_misses(asked, leases);
        for i in 1 .. coalesce(cardinality(held), 0) loop
            outcomes[held[i]] := 1;
        end loop;
    end if;

    untils := array_fill(null::timestamptz, array[cardinality(asked)]);
    cancels := array_fill(false, array[cardinality(asked)]);
    with given as materialized (
        -- Given twice, the longest duration holds for both.
        select u.place, array_agg(u.n) as asked_at, bool_or(durations[u.n] is null) as as_granted,
            max(durations[u.n]) as duration
        from unnest(held, places) u (n, place)
        group by u.place
    ),
    kept as (
        update leasehold.job j
        set lease_until = greatest(j.lease_until, clock_timestamp() + greatest(
            g.duration, case when g.as_granted then j.lease_duration end
        ) * interval '1 microsecond')
        from given g
        where j.ctid = g.place
        returning g.asked_at, j.lease_until, j.cancel_requested
    ),
    answered as (
        select p.n, k.lease_until, k.cancel_requested from kept k cross join lateral unnest(k.asked_at) p (n)
    )
    select array_agg(a.n), array_agg(a.lease_until), array_agg(a.cancel_requested)
    into held, moved_untils, moved_cancels
    from answered a;
    for i in 1 .. coalesce(cardinality(held), 0) loop
        untils[held[i]] := moved_untils[i];
        cancels[held[i]] := moved_cancels[i];
    end loop;
    extended_at := clock_timestamp();
end
$$;

-- Undoes grants that were never sent: ready again, the attempt not counted. Answers for each whether it was undone.
create function leasehold.give_back_leases(asked bigint[], leases uuid[]) returns boolean[] language plpgsql as $$
declare
    held bigint[];
    places tid[];
    undone boolean[] := array_fill(false, array[cardinality(asked)]);
begin
    select array_agg(u.n), array_agg(j.place)
    into held, places
    from unnest(asked, leases) with ordinality u (id, lease, n)
    cross join lateral (
        select j.ctid as place from leasehold.job j where j.id = u.id and j.lease_id is not distinct from u.lease for update skip locked
    ) j;

    update leasehold.job j
    set lease_id = null, lease_until = null, lease_duration = null, attempt = greatest(j.attempt - 1, 0),
        ready_at = greatest(j.available_at, clock_timestamp())
    where j.ctid = any (places);
    for i in 1 .. coalesce(cardinality(held), 0) loop
        undone[held[i]] := true;
    end loop;
    return undone;
end
$$;
