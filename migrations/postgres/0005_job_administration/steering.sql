-- Takes the rows of these keys, in order, where they exist or not. Waits for them; no service's transaction holds one.
create function leasehold.lock_keys(queues int[], keys text[]) returns void language plpgsql as $$
begin
    insert into leasehold.ordering_key as o (queue_id, ordering_key, head)
    select u.queue_id, u.ordering_key, 0
    from unnest(queues, keys) u (queue_id, ordering_key)
    group by u.queue_id, u.ordering_key
    order by u.queue_id, u.ordering_key collate "C"
    on conflict (queue_id, ordering_key) do update set head = o.head where false;
end
$$;

-- Removes jobs that are not leased, and marks those that are: whatever ends their leases, other than an ack, removes them.
-- Outcome codes: 1 removed, 2 marked, 3 gone, 4 busy. Streams name who holds a marked one, readied the queues in which keys
-- went on. Each id once.
--
-- Keys before jobs, other than where leases end: those acts come upon one job of a key at a time, this one may hold the next
-- one of a key as it waits for another's row. Jobs are not waited for, so nothing waits in a circle.
create function leasehold.cancel_jobs(
    asked bigint[], out outcomes smallint[], out streams bigint[], out readied int[]
) language plpgsql as $$
declare
    keyed_queues int[];
    keyed_keys text[];
    held bigint[];
    places tid[];
    leased boolean[];
    gone bigint[];
    gone_queues int[];
    gone_keys text[];
    marked bigint[];
    marked_streams bigint[];
    went_on boolean[];
begin
    select array_agg(j.queue_id), array_agg(j.ordering_key)
    into keyed_queues, keyed_keys
    from unnest(asked) u (id)
    cross join lateral (
        select j.queue_id, j.ordering_key
        from leasehold.job j
        where j.id = u.id and j.ordering_key is not null and j.queue_id <> 0
        offset 0
    ) j;
    if keyed_keys is not null then
        perform leasehold.lock_keys(keyed_queues, keyed_keys);
    end if;

    select array_agg(u.n), array_agg(j.place), array_agg(j.leased)
    into held, places, leased
    from unnest(asked) with ordinality u (id, n)
    cross join lateral (
        select j.ctid as place, j.lease_id is not null as leased
        from leasehold.job j
        where j.id = u.id
        for update skip locked
    ) j;

    with given as materialized (
        select u.n, u.place, u.leased from unnest(held, places, leased) u (n, place, leased)
    ),
    removed as (
        delete from leasehold.job j
        using given g
        where j.ctid = g.place and not g.leased
        returning g.n, j.queue_id, j.ordering_key
    ),
    requested as (
        update leasehold.job j
        set cancel_requested = true
        from given g
        where j.ctid = g.place and g.leased
        returning g.n, j.id, j.lease_stream
    ),
    told as (
        insert into leasehold.cancellation (lease_stream, job_id)
        select r.lease_stream, r.id
        from requested r
        cross join lateral (
            -- Nobody reads what is told to a replica that is gone.
            select p.id from leasehold.replica p where p.id = (r.lease_stream >> 32) & 4294967295 offset 0
        ) p
        on conflict (lease_stream, job_id) do nothing
    ),
    decided as (
        select r.n, r.queue_id, r.ordering_key, true as gone, null::bigint as lease_stream from removed r
        union all
        select r.n, null, null, false, r.lease_stream from requested r
    )
    select array_agg(d.n) filter (where d.gone), array_agg(d.queue_id) filter (where d.gone),
        array_agg(d.ordering_key) filter (where d.gone),
        array_agg(d.n) filter (where not d.gone), array_agg(d.lease_stream) filter (where not d.gone)
    into gone, gone_queues, gone_keys, marked, marked_streams
    from decided d;

    outcomes := (
        select array_agg(case when j.id is null then 3 else 4 end::smallint order by u.n)
        from unnest(asked) with ordinality u (id, n)
        left join lateral (select j.id from leasehold.job j where j.id = u.id offset 0) j on true
    );
    streams := array_fill(null::bigint, array[cardinality(asked)]);
    for i in 1 .. coalesce(cardinality(gone), 0) loop
        outcomes[gone[i]] := 1;
    end loop;
    for i in 1 .. coalesce(cardinality(marked), 0) loop
        outcomes[marked[i]] := 2;
        streams[marked[i]] := marked_streams[i];
    end loop;

    -- Keys that were taken and that nothing was removed from are looked at as well: their rows may be new.
    select array_agg(k.queue_id), array_agg(k.ordering_key)
    into keyed_queues, keyed_keys
    from (
        select u.queue_id, u.ordering_key from unnest(keyed_queues, keyed_keys) u (queue_id, ordering_key)
        union
        select u.queue_id, u.ordering_key
        from unnest(gone_queues, gone_keys) u (queue_id, ordering_key)
        where u.ordering_key is not null and u.queue_id <> 0
    ) k;
    readied := '{}';
    if keyed_keys is not null then
        went_on := leasehold.advance_keys(keyed_queues, keyed_keys);
        select coalesce(array_agg(distinct u.queue_id), '{}')
        into readied
        from unnest(keyed_queues, went_on) u (queue_id, went_on)
        where u.went_on;
    end if;
end
$$;

-- Makes a scheduled job ready; one that is blocked is due as soon as its key is free. Outcome codes: 1 ready now, 2 blocked
-- and due, 3 ready or leased already, 4 gone, 5 busy.
create function leasehold.run_job_now(asked bigint, out outcome smallint, out queue int) language plpgsql as $$
declare
    place tid;
    waits boolean;
begin
    select j.ctid into place from leasehold.job j where j.id = asked for update skip locked;
    if place is null then
        outcome := case when (select j.id from leasehold.job j where j.id = asked) is null then 4 else 5 end;
        return;
    end if;
    update leasehold.job j
    set available_at = least(j.available_at, clock_timestamp()), ready_at = clock_timestamp()
    where j.ctid = place and j.lease_id is null and (j.blocked or j.ready_at > now())
    returning j.queue_id, j.blocked into queue, waits;
    outcome := case when not found then 3 when waits then 2 else 1 end;
end
$$;

-- Makes dead jobs at these places, which the act holds, live again. Answers with their ids and the queues in which one became
-- ready. Those with ordering keys stand behind all that are there.
create function leasehold.revive_jobs(places tid[], out jobs bigint[], out readied int[]) language plpgsql as $$
declare
    queues int[];
    keyed_queues int[];
    keyed_keys text[];
    went_on boolean[];
begin
    with removed as (
        delete from leasehold.dead_job d
        where d.ctid = any (places)
        returning d.id, d.dead_at, d.lease_number, d.enqueued_at, d.available_at, d.queue_id, d.max_attempts, d.priority,
            d.ordering_key, d.idempotency_key, d.content_type, d.traceparent, d.tracestate, d.headers, d.last_error,
            d.payload, d.caller
    ),
    placed as materialized (
        -- A number that no job has had: later than every place in its key.
        select r.id, nextval('leasehold.job_id_seq'::regclass) as position
        from (select r.id from removed r where r.ordering_key is not null order by r.dead_at, r.id) r
    ),
    stored as (
        insert into leasehold.job (
            id, position, lease_number, enqueued_at, available_at, ready_at, queue_id, max_attempts, priority, blocked,
            ordering_key, idempotency_key, content_type, traceparent, tracestate, headers, last_error, payload, caller
        )
        select r.id, (select p.position from placed p where p.id = r.id), r.lease_number, r.enqueued_at, r.available_at,
            greatest(r.available_at, clock_timestamp()), r.queue_id, r.max_attempts, r.priority,
            r.ordering_key is not null, r.ordering_key, r.idempotency_key, r.content_type, r.traceparent, r.tracestate,
            r.headers, r.last_error, r.payload, r.caller
        from removed r
        returning id, queue_id, ordering_key
    )
    select array_agg(s.id), array_agg(distinct s.queue_id) filter (where s.ordering_key is null),
        array_agg(s.queue_id) filter (where s.ordering_key is not null),
        array_agg(s.ordering_key) filter (where s.ordering_key is not null)
    into jobs, queues, keyed_queues, keyed_keys
    from stored s;

    jobs := coalesce(jobs, '{}');
    readied := coalesce(queues, '{}');
    if keyed_keys is not null then
        went_on := leasehold.advance_keys(keyed_queues, keyed_keys);
        readied := readied || (
            select coalesce(array_agg(distinct u.queue_id), '{}')
            from unnest(keyed_queues, went_on) u (queue_id, went_on)
            where u.went_on
        );
    end if;
end
$$;

-- Makes these dead jobs live again, of queues that exist and are not being deleted.
create function leasehold.redrive_jobs(asked bigint[], out jobs bigint[], out readied int[], out redriven_at timestamptz)
language plpgsql as $$
declare
    places tid[];
begin
    redriven_at := now();
    select array_agg(d.place)
    into places
    from unnest(asked) u (id)
    cross join lateral (
        select d.ctid as place, d.queue_id from leasehold.dead_job d where d.id = u.id for update skip locked
    ) d
    cross join lateral (
        select q.id from leasehold.queue q where q.id = d.queue_id and q.closing_since is null offset 0
    ) q;
    select r.jobs, r.readied into jobs, readied from leasehold.revive_jobs(places) r;
end
$$;

-- Makes dead jobs of a queue live again, at_most of them, those that died first first. Walks at most `walk` rows behind the
-- given place, up to those that died at `until`; answers with the place to go on behind, if there is one. Does nothing where
-- the queue is being deleted, and answers with nulls.
create function leasehold.redrive_queue(
    queue int, after_at timestamptz, after_id bigint, until timestamptz, walk int, at_most int, died_after timestamptz,
    died_before timestamptz, error_contains text, wanted_key text, wanted_caller text,
    out jobs bigint[], out readied int[], out redriven_until timestamptz, out next_at timestamptz, out next_id bigint
) language plpgsql as $$
declare
    places tid[];
begin
    if (select q.id from leasehold.queue q where q.id = queue and q.closing_since is null) is null then
        return;
    end if;
    redriven_until := coalesce(until, now());
    with walked as materialized (
        select d.id, d.dead_at, row_number() over (order by d.dead_at, d.id) as n,
            (error_contains is null or strpos(d.last_error collate "C", error_contains) > 0)
                and (wanted_key is null or d.ordering_key = wanted_key)
                and (wanted_caller is null or d.caller = wanted_caller) as fits
        from (
            select d.id, d.dead_at, d.last_error, d.ordering_key, d.caller
            from leasehold.dead_job d
            where d.queue_id = queue
                and (d.dead_at, d.id) > (coalesce(after_at, '-infinity'), coalesce(after_id, 0))
                and d.dead_at <= redriven_until
                and d.dead_at > coalesce(died_after, '-infinity')
                and d.dead_at < coalesce(died_before, 'infinity')
            order by d.dead_at, d.id
            limit walk
        ) d
    ),
    picked as materialized (
        select w.id, w.n from walked w where w.fits order by w.n limit at_most
    ),
    stop as (
        -- Where it had enough, or looked at as many as it may.
        select case
            when (select count(1) from picked p) >= at_most then (select max(p.n) from picked p)
            when (select count(1) from walked w) >= walk then walk
        end as n
    )
    select array_agg(d.place), (select w.dead_at from walked w, stop s where w.n = s.n),
        (select w.id from walked w, stop s where w.n = s.n)
    into places, next_at, next_id
    from picked p
    cross join lateral (
        select d.ctid as place from leasehold.dead_job d where d.id = p.id for update skip locked
    ) d;
    select r.jobs, r.readied into jobs, readied from leasehold.revive_jobs(places) r;
end
$$;
