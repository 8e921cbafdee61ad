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
            update leasehold.job j set queue_id = queue where j.id = named[i] and j.blocked::int = 1;
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
            where j.id = any (keyless) and j.blocked::int = 1 and j.ordering_key is null
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
