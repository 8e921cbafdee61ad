-- Acts of several steps, each one call of the broker. They are VOLATILE, so that each of their statements has a snapshot of
-- its own: what is looked at after a lock is what was committed before the lock was had.
--
-- A function never changes its meaning: the next version brings one of another name, and this one goes a release later.
--
-- Locks are taken in this order: jobs (never waited for), idempotency keys, ordering keys, each sorted by queue and key.
-- Answers are arrays in the order of the items: a row per item would cost more than the work.
--
-- Plans are made once and kept, perhaps while the tables were empty, when reading all of a table looks cheap. So no
-- statement leaves the planner a choice: rows are found one by one in a lateral subquery that it cannot pull up (FOR UPDATE,
-- OFFSET 0), by "= any (array)", or by the place (ctid) at which an earlier statement of the same act locked them.

-- Lets keys go on whose head is gone. Says for each given key whether a job of it became ready, now or later. A key may be
-- given twice. Waits for the keys' rows, which no service's transaction holds.
create function leasehold.advance_keys(queues int[], keys text[]) returns boolean[] language plpgsql as $$
declare
    locked_queues int[];
    locked_keys text[];
    heads bigint[];
    places tid[];
    went_on boolean[];
begin
    -- A row that is there is locked and left as it is: a version of it for each lock would be walked by all that come later,
    -- for as long as somebody holds a snapshot.
    insert into leasehold.ordering_key as o (queue_id, ordering_key, head)
    select u.queue_id, u.ordering_key, 0
    from unnest(queues, keys) u (queue_id, ordering_key)
    group by u.queue_id, u.ordering_key
    order by u.queue_id, u.ordering_key collate "C"
    on conflict (queue_id, ordering_key) do update set head = o.head where false;

    select array_agg(u.queue_id), array_agg(u.ordering_key), array_agg(o.head), array_agg(o.place)
    into locked_queues, locked_keys, heads, places
    from (
        select k.queue_id, k.ordering_key
        from unnest(queues, keys) k (queue_id, ordering_key)
        group by k.queue_id, k.ordering_key
        order by k.queue_id, k.ordering_key collate "C"
    ) u
    cross join lateral (
        select o.head, o.ctid as place
        from leasehold.ordering_key o
        where o.queue_id = u.queue_id and o.ordering_key = u.ordering_key
        offset 0
    ) o;

    with keyed as (
        select u.n, u.queue_id, u.ordering_key, u.place, (
            select true from leasehold.job j where j.id = u.head and not j.blocked
        ) is null as free
        from unnest(locked_queues, locked_keys, heads, places)
            with ordinality u (queue_id, ordering_key, head, place, n)
    ),
    next as materialized (
        select k.n, k.place, k.free, case when k.free then (
            select b.id
            from leasehold.job b
            where b.queue_id = k.queue_id and b.ordering_key = k.ordering_key and b.blocked
            order by b.position
            limit 1
            for update
        ) end as id
        from keyed k
    ),
    readied as (
        update leasehold.job j
        set blocked = false, ready_at = greatest(j.available_at, clock_timestamp())
        where j.id = any (array(select n.id from next n where n.id is not null))
    ),
    headed as (
        update leasehold.ordering_key o set head = n.id from next n where n.id is not null and o.ctid = n.place
    ),
    emptied as (
        delete from leasehold.ordering_key o using next n where n.free and n.id is null and o.ctid = n.place
    )
    select array_agg(n.id is not null order by n.n) into went_on from next n;

    return (
        select array_agg(went_on[k.place] order by k.n)
        from (
            select u.n, dense_rank() over (order by u.queue_id, u.ordering_key collate "C") as place
            from unnest(queues, keys) with ordinality u (queue_id, ordering_key, n)
        ) k
    );
end
$$;

-- Moves jobs of these keys to their queues that leasehold.enqueue left when those did not exist yet: they come before jobs
-- that are stored later. Waits for others who do the same.
create function leasehold.place_named(queues int[], keys text[]) returns void language plpgsql as $$
declare
    strays bigint[];
    targets int[];
begin
    if (
        select a.queue_name from leasehold.arrival a where a.queue_name is not null order by a.queue_name, a.ordering_key limit 1
    ) is null then
        return;
    end if;
    select array_agg(a.job_id), array_agg(u.queue_id)
    into strays, targets
    from (select distinct k.queue_id, k.ordering_key from unnest(queues, keys) k (queue_id, ordering_key)) u
    cross join lateral (select q.name from leasehold.queue q where q.id = u.queue_id offset 0) q
    cross join lateral (
        select a.job_id from leasehold.arrival a where a.queue_name = q.name and a.ordering_key = u.ordering_key offset 0
    ) a;
    if strays is not null then
        perform from leasehold.job j where j.id = any (strays) and j.queue_id = 0 order by j.id for update;
        update leasehold.job j
        set queue_id = targets[array_position(strays, j.id)]
        where j.id = any (strays) and j.queue_id = 0;
    end if;
end
$$;

-- Stores jobs of which some have keys. Ids rise in the given order. Known idempotency keys make duplicates, which get the
-- id of the job stored earlier and no ready_at; other content under one fails with LH001, the index as its detail.
create function leasehold.enqueue_keyed(
    queues int[], payloads bytea[], content_types text[], header_texts text[], priorities smallint[], delays bigint[],
    starts timestamptz[], attempts int[], ordering_keys text[], idempotency_keys text[], contents bytea[],
    retentions bigint[], traceparents text[], tracestates text[], short_wait boolean,
    out ids bigint[], out ready_ats timestamptz[], out duplicates boolean[], out stored_at timestamptz
) language plpgsql as $$
declare
    heads bigint[];
    undecided_queues int[];
    undecided_keys text[];
    waits boolean[];
    known_ids bigint[];
    known_contents bytea[];
    reused bigint;
begin
    if short_wait then
        perform set_config('lock_timeout', '50ms', true);
    end if;

    if num_nonnulls(variadic ordering_keys) > 0 then
        perform leasehold.place_named(queues, ordering_keys);
    end if;

    select array_agg(nextval('leasehold.job_id_seq'::regclass)), array_agg(false)
    into ids, duplicates
    from generate_series(1, cardinality(queues));

    if num_nonnulls(variadic idempotency_keys) > 0 then
        with asked as (
            select u.n, u.id, u.queue_id, u.key, u.content, u.retention
            from unnest(ids, queues, idempotency_keys, contents, retentions)
                with ordinality u (id, queue_id, key, content, retention, n)
            where u.key is not null
        ),
        firsts as (
            select distinct on (a.queue_id, a.key collate "C")
                a.queue_id, a.key, a.id, a.content, a.retention,
                count(1) over (partition by a.queue_id, a.key) - 1 as again
            from asked a
            order by a.queue_id, a.key collate "C", a.n
        ),
        known as (
            insert into leasehold.idempotency_key as k (queue_id, key, job_id, content, hits, expires_at)
            select f.queue_id, f.key, f.id, f.content, f.again,
                clock_timestamp() + f.retention * interval '1 microsecond'
            from firsts f
            order by f.queue_id, f.key collate "C"
            on conflict (queue_id, key) do update set
                hits = case when k.expires_at > now() then k.hits + 1 else 0 end + excluded.hits,
                job_id = case when k.expires_at > now() then k.job_id else excluded.job_id end,
                content = case when k.expires_at > now() then k.content else excluded.content end,
                expires_at = case when k.expires_at > now() then k.expires_at else excluded.expires_at end
            returning k.job_id, k.content
        )
        select array_agg(k.job_id), array_agg(k.content) into known_ids, known_contents from known k;

        -- The known ones came back in the order in which they were put in: that of the keys.
        with asked as (
            select u.n, u.id, u.content, u.key,
                dense_rank() over (order by u.key is null, u.queue_id, u.key collate "C") as place
            from unnest(ids, queues, idempotency_keys, contents) with ordinality u (id, queue_id, key, content, n)
        )
        select
            array_agg(case when a.key is null then a.id else known_ids[a.place] end order by a.n),
            array_agg(a.key is not null and a.id <> known_ids[a.place] order by a.n),
            min(a.n) filter (where a.key is not null and a.content <> known_contents[a.place])
        into ids, duplicates, reused
        from asked a;

        if reused is not null then
            raise exception 'idempotency key in use with other content'
                using errcode = 'LH001', detail = (reused - 1)::text;
        end if;
    end if;

    if num_nonnulls(variadic ordering_keys) > 0 then
        with fresh as (
            select u.queue_id, u.ordering_key, min(u.id) as first
            from unnest(ids, duplicates, queues, ordering_keys) u (id, duplicate, queue_id, ordering_key)
            where not u.duplicate and u.ordering_key is not null
            group by u.queue_id, u.ordering_key
        )
        insert into leasehold.ordering_key as o (queue_id, ordering_key, head)
        select f.queue_id, f.ordering_key,
            -- Seen before the key was had, so this is only a reason to look again.
            coalesce((
                select 0
                from leasehold.job j
                where j.queue_id = f.queue_id and j.ordering_key = f.ordering_key and j.blocked
                limit 1
            ), f.first)
        from fresh f
        order by f.queue_id, f.ordering_key collate "C"
        on conflict (queue_id, ordering_key) do update set head = o.head where false;

        select array_agg(o.head), array_agg(u.queue_id) filter (where o.head = 0),
            array_agg(u.ordering_key) filter (where o.head = 0)
        into heads, undecided_queues, undecided_keys
        from (
            select k.queue_id, k.ordering_key
            from unnest(duplicates, queues, ordering_keys) k (duplicate, queue_id, ordering_key)
            where not k.duplicate and k.ordering_key is not null
            group by k.queue_id, k.ordering_key
            order by k.queue_id, k.ordering_key collate "C"
        ) u
        cross join lateral (
            select o.head
            from leasehold.ordering_key o
            where o.queue_id = u.queue_id and o.ordering_key = u.ordering_key
            offset 0
        ) o;
    end if;

    -- After the locks, so that a job that waited for its key does not become ready in the past.
    stored_at := clock_timestamp();
    select array_agg(f.waits order by f.n), array_agg(case when not f.waits and not f.duplicate then f.due end order by f.n)
    into waits, ready_ats
    from (
        select u.n, u.duplicate,
            greatest(u.start, stored_at + coalesce(u.delay, 0) * interval '1 microsecond') as due,
            not u.duplicate and u.ordering_key is not null and heads[dense_rank() over (
                order by u.duplicate or u.ordering_key is null, u.queue_id, u.ordering_key collate "C"
            )] is distinct from u.id as waits
        from unnest(ids, duplicates, queues, ordering_keys, delays, starts)
            with ordinality u (id, duplicate, queue_id, ordering_key, delay, start, n)
    ) f;

    insert into leasehold.job (
        id, position, enqueued_at, available_at, ready_at, queue_id, max_attempts, priority, blocked, ordering_key,
        idempotency_key, content_type, traceparent, tracestate, headers, payload
    )
    select u.id, case when u.ordering_key is not null then u.id end, stored_at,
        coalesce(u.start, stored_at + coalesce(u.delay, 0) * interval '1 microsecond'),
        greatest(u.start, stored_at + coalesce(u.delay, 0) * interval '1 microsecond'),
        u.queue_id, u.attempt, u.priority, u.waits, u.ordering_key, u.idempotency_key, u.content_type, u.traceparent,
        u.tracestate, u.header, u.payload
    from unnest(
        ids, duplicates, waits, queues, payloads, content_types, header_texts, priorities, delays, starts, attempts,
        ordering_keys, idempotency_keys, traceparents, tracestates
    ) with ordinality u (
        id, duplicate, waits, queue_id, payload, content_type, header, priority, delay, start, attempt, ordering_key,
        idempotency_key, traceparent, tracestate, n
    )
    where not u.duplicate
    order by u.n;

    -- Jobs of these keys were there already, or were a moment ago: left by leasehold.enqueue, or just freed.
    if undecided_keys is not null then
        perform leasehold.advance_keys(undecided_queues, undecided_keys);
        select array_agg(
            case when u.waits then (select j.ready_at from leasehold.job j where j.id = u.id and not j.blocked) else u.due end
            order by u.n
        )
        into ready_ats
        from unnest(ids, waits, ready_ats) with ordinality u (id, waits, due, n);
    end if;
end
$$;

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
        select j.ctid as place from leasehold.job j where j.id = u.id and j.lease_id = u.lease for update skip locked
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
            where j.id = u.id and j.lease_id = u.lease
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
        select j.ctid as place from leasehold.job j where j.id = u.id and j.lease_id = u.lease for update skip locked
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
        select j.ctid as place from leasehold.job j where j.id = u.id and j.lease_id = u.lease for update skip locked
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

-- Makes jobs of expired leases ready, or dead where no attempt is left; the longest expired first.
--
-- The floor to go on from: below every expired lease that is left, such as one that somebody holds, and a second in the
-- past, since a claim that has not committed yet is not seen. Its lease cannot end earlier than a second after its statement
-- began, so only one whose commit takes longer than that is missed; the passes from the beginning find it.
create function leasehold.reap_leases(
    floor timestamptz, at_most int,
    out jobs bigint[], out leases uuid[], out queues int[], out deads boolean[], out readied int[],
    out next_floor timestamptz
) language plpgsql as $$
declare
    first timestamptz;
    places tid[];
    keyed_queues int[];
    keyed_keys text[];
    went_on boolean[];
begin
    -- What lies before the first one has been settled, and may still be there for this walk to pass: once is enough.
    first := (
        select j.lease_until
        from leasehold.job j
        where j.lease_id is not null and j.lease_until > floor and j.lease_until <= now()
        order by j.lease_until
        limit 1
    );
    select coalesce(array_agg(j.id), '{}'), coalesce(array_agg(j.lease_id), '{}'), coalesce(array_agg(j.queue_id), '{}'),
        coalesce(array_agg(j.dies), '{}'), array_agg(j.place)
    into jobs, leases, queues, deads, places
    from (
        select j.id, j.lease_id, j.queue_id, j.attempt >= j.max_attempts as dies, j.ctid as place
        from leasehold.job j
        where j.lease_id is not null and j.lease_until >= first and j.lease_until <= now()
        order by j.lease_until
        limit at_most
        for update skip locked
    ) j;

    readied := '{}';
    if places is not null then
        with given as materialized (
            select u.place, u.dies from unnest(places, deads) u (place, dies)
        ),
        returned as (
            update leasehold.job j
            set lease_id = null, lease_until = null, lease_duration = null,
                ready_at = greatest(j.available_at, clock_timestamp()), last_error = 'lease expired'
            from given g
            where j.ctid = g.place and not g.dies
        ),
        removed as (
            delete from leasehold.job j
            using given g
            where j.ctid = g.place and g.dies
            returning j.id, j.position, j.lease_number, j.enqueued_at, j.available_at, j.queue_id, j.attempt,
                j.max_attempts, j.priority, j.ordering_key, j.idempotency_key, j.content_type, j.traceparent, j.tracestate,
                j.headers, j.payload
        ),
        buried as (
            insert into leasehold.dead_job (
                id, position, lease_number, enqueued_at, available_at, dead_at, expires_at, queue_id, attempt,
                max_attempts, priority, ordering_key, idempotency_key, content_type, traceparent, tracestate, headers,
                last_error, payload
            )
            select r.id, r.position, r.lease_number, r.enqueued_at, r.available_at, clock_timestamp(),
                clock_timestamp() + (
                    select q.dead_retention from leasehold.queue q where q.id = r.queue_id
                ) * interval '1 microsecond',
                r.queue_id, r.attempt, r.max_attempts, r.priority, r.ordering_key, r.idempotency_key, r.content_type,
                r.traceparent, r.tracestate, r.headers, 'lease expired', r.payload
            from removed r
        )
        select array_agg(r.queue_id), array_agg(r.ordering_key)
        into keyed_queues, keyed_keys
        from removed r
        where r.ordering_key is not null;
    end if;

    if keyed_queues is not null then
        went_on := leasehold.advance_keys(keyed_queues, keyed_keys);
        select coalesce(array_agg(distinct u.queue_id), '{}')
        into readied
        from unnest(keyed_queues, went_on) u (queue_id, went_on)
        where u.went_on;
    end if;

    next_floor := greatest(floor, least(now() - interval '1 second', (
        select j.lease_until - interval '1 microsecond'
        from leasehold.job j
        where j.lease_id is not null and j.lease_until >= first and j.lease_until <= now()
        order by j.lease_until
        limit 1
    )));
end
$$;

-- Adopts what services left: their jobs become ready, their freed keys go on. Walks transactions from the floor on.
--
-- The floor to go on from: the oldest transaction that may still leave something, or of which something is left.
create function leasehold.adopt_arrivals(
    floor bigint, at_most int, out adopted bigint, out readied int[], out next_floor bigint
) language plpgsql as $$
declare
    keyless bigint[];
    named bigint[];
    names text[];
    named_keys text[];
    keyed_queues int[];
    keyed_keys text[];
    went_on boolean[];
    queue int;
begin
    with taken as materialized (
        select a.ctid as place
        from leasehold.arrival a
        where a.xact >= floor
        order by a.xact, a.id
        limit at_most
        for update skip locked
    ),
    removed as (
        delete from leasehold.arrival a
        using taken t
        where a.ctid = t.place
        returning a.job_id, a.queue_id, a.ordering_key, a.queue_name
    )
    select count(1),
        array_agg(r.job_id) filter (where r.ordering_key is null),
        array_agg(r.job_id order by r.job_id) filter (where r.queue_name is not null),
        array_agg(r.queue_name order by r.job_id) filter (where r.queue_name is not null),
        array_agg(r.ordering_key order by r.job_id) filter (where r.queue_name is not null),
        coalesce(array_agg(r.queue_id) filter (where r.ordering_key is not null and r.queue_name is null), '{}'),
        coalesce(array_agg(r.ordering_key) filter (where r.ordering_key is not null and r.queue_name is null), '{}')
    into adopted, keyless, named, names, named_keys, keyed_queues, keyed_keys
    from removed r;

    -- The queue did not exist: it comes into being here, since in the service's transaction it would have kept everybody
    -- else who needs it waiting.
    if named is not null then
        insert into leasehold.queue (name)
        select u.name
        from unnest(names) u (name)
        where (select q.id from leasehold.queue q where q.name = u.name) is null
        group by u.name
        order by u.name collate "C"
        on conflict (name) do nothing;
        for i in 1 .. cardinality(named) loop
            queue := (select q.id from leasehold.queue q where q.name = names[i]);
            update leasehold.job j set queue_id = queue where j.id = named[i] and j.blocked;
            if found and named_keys[i] is not null then
                keyed_queues := keyed_queues || queue;
                keyed_keys := keyed_keys || named_keys[i];
            end if;
        end loop;
    end if;

    readied := '{}';
    if keyless is not null then
        with freed as (
            update leasehold.job j
            set blocked = false, ready_at = greatest(j.available_at, clock_timestamp())
            where j.id = any (keyless) and j.blocked and j.ordering_key is null
            returning j.queue_id
        )
        select coalesce(array_agg(distinct f.queue_id), '{}') into readied from freed f;
    end if;
    if cardinality(keyed_keys) > 0 then
        perform leasehold.place_named(keyed_queues, keyed_keys);
        went_on := leasehold.advance_keys(keyed_queues, keyed_keys);
        select readied || coalesce(array_agg(distinct u.queue_id), '{}')
        into readied
        from unnest(keyed_queues, went_on) u (queue_id, went_on)
        where u.went_on;
    end if;

    next_floor := greatest(floor, least(
        pg_snapshot_xmin(pg_current_snapshot())::text::bigint,
        (select a.xact from leasehold.arrival a where a.xact >= floor order by a.xact limit 1)
    ));
end
$$;

-- Removes dead jobs past their retention. The floor to go on from, as in reap_leases.
create function leasehold.prune_dead_jobs(
    floor timestamptz, at_most int, out removed bigint, out next_floor timestamptz
) language plpgsql as $$
begin
    with taken as materialized (
        select d.ctid as place
        from leasehold.dead_job d
        where d.expires_at > floor and d.expires_at <= now()
        order by d.expires_at
        limit at_most
        for update skip locked
    ),
    gone as (
        delete from leasehold.dead_job d using taken t where d.ctid = t.place returning d.id
    )
    select count(g.id) into removed from gone g;

    next_floor := greatest(floor, least(now() - interval '1 minute', (
        select d.expires_at - interval '1 microsecond'
        from leasehold.dead_job d
        where d.expires_at > floor and d.expires_at <= now()
        order by d.expires_at
        limit 1
    )));
end
$$;

-- Removes idempotency keys past their retention. The floor to go on from, as in reap_leases. (An expired key that comes
-- again while this runs has moved away from its place, but then it has not expired either.)
create function leasehold.prune_idempotency_keys(
    floor timestamptz, at_most int, out removed bigint, out next_floor timestamptz
) language plpgsql as $$
begin
    with taken as materialized (
        select k.ctid as place
        from leasehold.idempotency_key k
        where k.expires_at > floor and k.expires_at <= now()
        order by k.expires_at
        limit at_most
        for update skip locked
    ),
    gone as (
        delete from leasehold.idempotency_key k using taken t where k.ctid = t.place returning k.job_id
    )
    select count(g.job_id) into removed from gone g;

    next_floor := greatest(floor, least(now() - interval '1 minute', (
        select k.expires_at - interval '1 microsecond'
        from leasehold.idempotency_key k
        where k.expires_at > floor and k.expires_at <= now()
        order by k.expires_at
        limit 1
    )));
end
$$;
