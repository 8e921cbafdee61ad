-- Purging, in steps: each walks so many rows from its place on and removes those that were enqueued before an instant. Rows
-- that somebody holds are passed over. The place to go on from is that of the last row walked, removed or not, so that no row
-- is walked twice, nor what vacuum may not take away yet. A bitmap of an index would be of all its rows, however few a step wants.

-- Jobs that wait unblocked: the ready ones, or those that are due later. The oldest by ready_at first, over all priorities.
create function leasehold.purge_waiting(
    queue int, due boolean, before timestamptz, after_at timestamptz, after_id bigint, at_most int,
    out removed bigint, out readied boolean, out walked bigint, out last_at timestamptz, out last_id bigint
) language plpgsql
set enable_bitmapscan = off
as $$
declare
    until timestamptz := case when due then now() else 'infinity' end;
    ids bigint[];
    ats timestamptz[];
    keyed_queues int[];
    keyed_keys text[];
begin
    last_at := case when due then after_at else greatest(after_at, now()) end;
    last_id := case when last_at > after_at then 0 else after_id end;
    -- Locked only afterwards: an order over the levels would lock all of them.
    select array_agg(w.id order by w.ready_at, w.id), array_agg(w.ready_at order by w.ready_at, w.id), count(w.id)
    into ids, ats, walked
    from (
        select l.id, l.ready_at
        from generate_series(9, 0, -1) level
        cross join lateral (
            select j.id, j.ready_at
            from leasehold.job j
            where j.queue_id = queue
                and j.priority = level
                and j.lease_id is null
                and not j.blocked
                and (j.ready_at, j.id) > (last_at, last_id)
                and j.ready_at <= until
            order by j.ready_at, j.id
            limit at_most
        ) l
        order by l.ready_at, l.id
        limit at_most
    ) w;
    removed := 0;
    readied := false;
    if walked = 0 then
        return;
    end if;
    last_at := ats[walked];
    last_id := ids[walked];

    with taken as materialized (
        select t.place
        from unnest(ids) u (id)
        cross join lateral (
            select j.ctid as place
            from leasehold.job j
            where j.id = u.id and j.lease_until is null and j.blocked::int = 0 and j.enqueued_at < before
            for update skip locked
        ) t
    ),
    gone as (
        delete from leasehold.job j using taken t where j.ctid = t.place returning j.ordering_key
    )
    select count(1), array_agg(g.ordering_key) filter (where g.ordering_key is not null)
    into removed, keyed_keys
    from gone g;
    if keyed_keys is not null then
        keyed_queues := array_fill(queue, array[cardinality(keyed_keys)]);
        readied := true = any (leasehold.advance_keys(keyed_queues, keyed_keys));
    end if;
end
$$;

-- Jobs behind others of their ordering key, key by key. (Those that wait for their adoption are ready a moment later.)
create function leasehold.purge_blocked(
    queue int, before timestamptz, after_key text, after_position bigint, at_most int,
    out removed bigint, out walked bigint, out last_key text, out last_position bigint
) language plpgsql
set enable_bitmapscan = off
as $$
declare
    ids bigint[];
begin
    select array_agg(w.id order by w.n), count(w.id), (array_agg(w.ordering_key order by w.n desc))[1],
        (array_agg(w.position order by w.n desc))[1]
    into ids, walked, last_key, last_position
    from (
        select b.id, b.ordering_key, b.position, row_number() over () as n
        from (
            select j.id, j.ordering_key, j.position
            from leasehold.job j
            where j.queue_id = queue and j.blocked and (j.ordering_key, j.position) > (after_key, after_position)
            order by j.ordering_key, j.position
            limit at_most
        ) b
    ) w;
    removed := 0;
    if walked = 0 then
        last_key := after_key;
        last_position := after_position;
        return;
    end if;
    -- Looked at again under the lock: an earlier job of the key may have gone meanwhile, and this one its place.
    with taken as materialized (
        select t.place
        from unnest(ids) u (id)
        cross join lateral (
            select j.ctid as place
            from leasehold.job j
            where j.id = u.id and j.blocked::int = 1 and j.enqueued_at < before
            for update skip locked
        ) t
    ),
    gone as (
        delete from leasehold.job j using taken t where j.ctid = t.place returning j.id
    )
    select count(1) into removed from gone g;
end
$$;

-- Dead jobs, those that died first first.
create function leasehold.purge_dead(
    queue int, before timestamptz, after_at timestamptz, after_id bigint, at_most int,
    out removed bigint, out walked bigint, out last_at timestamptz, out last_id bigint
) language plpgsql
set enable_bitmapscan = off
as $$
declare
    ids bigint[];
begin
    select array_agg(w.id order by w.dead_at, w.id), count(w.id), max(w.dead_at),
        (array_agg(w.id order by w.dead_at desc, w.id desc))[1]
    into ids, walked, last_at, last_id
    from (
        select d.id, d.dead_at
        from leasehold.dead_job d
        where d.queue_id = queue and (d.dead_at, d.id) > (after_at, after_id)
        order by d.dead_at, d.id
        limit at_most
    ) w;
    removed := 0;
    if walked = 0 then
        last_at := after_at;
        last_id := after_id;
        return;
    end if;
    with taken as materialized (
        select t.place
        from unnest(ids) u (id)
        cross join lateral (
            select d.ctid as place from leasehold.dead_job d where d.id = u.id and d.enqueued_at < before for update skip locked
        ) t
    ),
    gone as (
        delete from leasehold.dead_job d using taken t where d.ctid = t.place returning d.id
    )
    select count(1) into removed from gone g;
end
$$;

-- Acked jobs that are kept, by their ids.
create function leasehold.purge_acked(
    queue int, before timestamptz, after_id bigint, at_most int,
    out removed bigint, out walked bigint, out last_id bigint
) language plpgsql
set enable_bitmapscan = off
as $$
declare
    ids bigint[];
begin
    select array_agg(w.id order by w.id), count(w.id), coalesce(max(w.id), after_id)
    into ids, walked, last_id
    from (
        select a.id from leasehold.acked_job a where a.queue_id = queue and a.id > after_id order by a.id limit at_most
    ) w;
    with taken as materialized (
        select t.place
        from unnest(ids) u (id)
        cross join lateral (
            select a.ctid as place from leasehold.acked_job a where a.id = u.id and a.enqueued_at < before for update skip locked
        ) t
    ),
    gone as (
        delete from leasehold.acked_job a using taken t where a.ctid = t.place returning a.id
    )
    select count(1) into removed from gone g;
end
$$;

-- What a queue leaves beside its jobs: idempotency keys, then ordering keys whose jobs are gone. Answers how many of them.
create function leasehold.clear_queue(queue int, at_most int) returns bigint language plpgsql
set enable_bitmapscan = off
as $$
declare
    cleared bigint;
begin
    with taken as materialized (
        select k.ctid as place
        from leasehold.idempotency_key k
        where k.queue_id = queue
        order by k.key
        limit at_most
        for update skip locked
    ),
    gone as (
        delete from leasehold.idempotency_key k using taken t where k.ctid = t.place returning k.job_id
    )
    select count(1) into cleared from gone g;
    if cleared = 0 then
        with taken as materialized (
            select o.ctid as place
            from leasehold.ordering_key o
            where o.queue_id = queue
                and (select j.id from leasehold.job j where j.queue_id = queue and j.ordering_key = o.ordering_key and j.blocked limit 1) is null
                and (select j.id from leasehold.job j where j.id = o.head) is null
            order by o.ordering_key
            limit at_most
            for update skip locked
        ),
        gone as (
            delete from leasehold.ordering_key o using taken t where o.ctid = t.place returning o.head
        )
        select count(1) into cleared from gone g;
    end if;
    return cleared;
end
$$;

