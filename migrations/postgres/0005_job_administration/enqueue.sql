-- leasehold.enqueue_keyed with the business process that enqueues the jobs. Ids rise in the given order. Known idempotency
-- keys make duplicates, which get the id of the job stored earlier and no ready_at; other content under one fails with
-- LH001, the index as its detail.
create function leasehold.enqueue_keyed_by(
    queues int[], payloads bytea[], content_types text[], header_texts text[], priorities smallint[], delays bigint[],
    starts timestamptz[], attempts int[], ordering_keys text[], idempotency_keys text[], contents bytea[],
    retentions bigint[], traceparents text[], tracestates text[], short_wait boolean, enqueuer text,
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
        idempotency_key, content_type, traceparent, tracestate, headers, payload, caller
    )
    select u.id, case when u.ordering_key is not null then u.id end, stored_at,
        coalesce(u.start, stored_at + coalesce(u.delay, 0) * interval '1 microsecond'),
        greatest(u.start, stored_at + coalesce(u.delay, 0) * interval '1 microsecond'),
        u.queue_id, u.attempt, u.priority, u.waits, u.ordering_key, u.idempotency_key, u.content_type, u.traceparent,
        u.tracestate, u.header, u.payload, enqueuer
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
