-- Leases end without their jobs coming back where somebody asked to cancel them. Functions that the version before calls keep
-- their signatures, so that its leases end alike.

-- Gives jobs back or moves them to the dead jobs; those that are to be cancelled go. Actions: 1 retry, 2 release, 3 reject.
-- Where there is no delay, a retry waits for the queue's back-off at the given fraction of its ceiling: base, doubled with each attempt, up to the cap.
create function leasehold.nack_jobs(
    asked bigint[], leases uuid[], actions smallint[], delays bigint[], fractions float8[], errors text[],
    short_wait boolean,
    out outcomes smallint[], out deads boolean[], out queues int[], out ready_ats timestamptz[], out readied int[],
    out settled_at timestamptz
) language plpgsql as $$
declare
    held bigint[];
    places tid[];
    dying boolean[];
    going boolean[];
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
    select array_agg(h.n), array_agg(h.place), array_agg(h.dies), array_agg(h.goes), array_agg(h.due),
        array_agg(h.dead_retention)
    into held, places, dying, going, dues, retentions
    from (
        -- Given twice, the first decides.
        select distinct on (j.place) u.n, j.place, q.dead_retention, j.cancel_requested as goes,
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
            select j.ctid as place, j.queue_id, j.attempt, j.max_attempts, j.cancel_requested
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
        select u.n, u.place, u.dies, u.goes, u.due, u.retention, actions[u.n] as action, nullif(errors[u.n], '') as error
        from unnest(held, places, dying, going, dues, retentions) u (n, place, dies, goes, due, retention)
    ),
    returned as (
        update leasehold.job j
        set lease_id = null, lease_until = null, lease_duration = null, lease_stream = null,
            attempt = case when g.action = 2 then greatest(j.attempt - 1, 0) else j.attempt end,
            ready_at = greatest(j.available_at, g.due),
            last_error = case when g.action = 2 then coalesce(g.error, j.last_error) else g.error end
        from given g
        where j.ctid = g.place and not g.dies and not g.goes
        returning g.n, j.queue_id, j.ready_at
    ),
    removed as (
        delete from leasehold.job j
        using given g
        where j.ctid = g.place and (g.dies or g.goes)
        returning g.n, g.goes, g.error, g.retention, j.id, j.position, j.lease_number, j.enqueued_at, j.available_at,
            j.queue_id, j.attempt, j.max_attempts, j.priority, j.ordering_key, j.idempotency_key, j.content_type,
            j.traceparent, j.tracestate, j.headers, j.payload, j.caller
    ),
    buried as (
        insert into leasehold.dead_job (
            id, position, lease_number, enqueued_at, available_at, dead_at, expires_at, queue_id, attempt, max_attempts,
            priority, ordering_key, idempotency_key, content_type, traceparent, tracestate, headers, last_error, payload,
            caller
        )
        select r.id, r.position, r.lease_number, r.enqueued_at, r.available_at, clock_timestamp(),
            clock_timestamp() + r.retention * interval '1 microsecond', r.queue_id, r.attempt, r.max_attempts,
            r.priority, r.ordering_key, r.idempotency_key, r.content_type, r.traceparent, r.tracestate, r.headers,
            r.error, r.payload, r.caller
        from removed r
        where not r.goes
    ),
    settled as (
        select r.n, false as dead, r.ready_at, r.queue_id, null::text as ordering_key from returned r
        union all
        select r.n, not r.goes, null, r.queue_id, r.ordering_key from removed r
    )
    select array_agg(s.n), array_agg(s.dead), array_agg(s.ready_at), array_agg(s.queue_id),
        array_agg(s.n) filter (where s.ordering_key is not null),
        array_agg(s.queue_id) filter (where s.ordering_key is not null),
        array_agg(s.ordering_key) filter (where s.ordering_key is not null)
    into done, done_dead, done_ready, done_queues, keyed, keyed_queues, keyed_keys
    from settled s;

    deads := array_fill(false, array[cardinality(asked)]);
    ready_ats := array_fill(null::timestamptz, array[cardinality(asked)]);
    queues := array_fill(null::int, array[cardinality(asked)]);
    readied := array_fill(null::int, array[cardinality(asked)]);
    if coalesce(cardinality(done), 0) = cardinality(asked) then
        outcomes := array_fill(1::smallint, array[cardinality(asked)]);
    else
        outcomes := leasehold.explain_misses(asked, leases);
    end if;
    for i in 1 .. coalesce(cardinality(done), 0) loop
        outcomes[done[i]] := 1;
        queues[done[i]] := done_queues[i];
        if done_dead[i] then
            deads[done[i]] := true;
        elsif done_ready[i] is not null then
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

-- What the version before calls.
create or replace function leasehold.nack_leases(
    asked bigint[], leases uuid[], actions smallint[], delays bigint[], fractions float8[], errors text[],
    short_wait boolean,
    out outcomes smallint[], out deads boolean[], out ready_ats timestamptz[], out readied int[], out settled_at timestamptz
) language plpgsql as $$
begin
    select n.outcomes, n.deads, n.ready_ats, n.readied, n.settled_at
    into outcomes, deads, ready_ats, readied, settled_at
    from leasehold.nack_jobs(asked, leases, actions, delays, fractions, errors, short_wait) n;
end
$$;

-- Makes jobs at these places, which the act holds, ready as if their leases had not been; those that are to be cancelled
-- go. Answers with the queues and keys of these.
create function leasehold.return_unsent(places tid[], out queues int[], out keys text[]) language plpgsql as $$
begin
    update leasehold.job j
    set lease_id = null, lease_until = null, lease_duration = null, lease_stream = null,
        attempt = greatest(j.attempt - 1, 0), ready_at = greatest(j.available_at, clock_timestamp())
    where j.ctid = any (places) and not j.cancel_requested;
    -- Those that were updated have moved, but the places of the others are theirs.
    with removed as (
        delete from leasehold.job j
        where j.ctid = any (places) and j.cancel_requested
        returning j.queue_id, j.ordering_key
    )
    select array_agg(r.queue_id), array_agg(r.ordering_key)
    into queues, keys
    from removed r
    where r.ordering_key is not null;
end
$$;

-- Undoes grants that were never sent: ready again, the attempt not counted; jobs that are to be cancelled go. Answers for
-- each whether it was undone.
create or replace function leasehold.give_back_leases(asked bigint[], leases uuid[]) returns boolean[] language plpgsql as $$
declare
    held bigint[];
    places tid[];
    undone boolean[] := array_fill(false, array[cardinality(asked)]);
    keyed_queues int[];
    keyed_keys text[];
begin
    select array_agg(u.n), array_agg(j.place)
    into held, places
    from unnest(asked, leases) with ordinality u (id, lease, n)
    cross join lateral (
        select j.ctid as place from leasehold.job j where j.id = u.id and j.lease_id is not distinct from u.lease for update skip locked
    ) j;

    select k.queues, k.keys into keyed_queues, keyed_keys from leasehold.return_unsent(places) k;
    if keyed_keys is not null then
        perform leasehold.advance_keys(keyed_queues, keyed_keys);
    end if;
    for i in 1 .. coalesce(cardinality(held), 0) loop
        undone[held[i]] := true;
    end loop;
    return undone;
end
$$;

-- Undoes the grants of these leases, whose jobs nobody knows: by a walk over all leases, expired or not, which is what the
-- bound on the time is for. Answers with the queues in which jobs became ready.
create function leasehold.give_back_unseen(wanted uuid[]) returns int[] language plpgsql as $$
declare
    places tid[];
    queues int[];
    keyed_queues int[];
    keyed_keys text[];
begin
    select array_agg(j.place), array_agg(distinct j.queue_id)
    into places, queues
    from (
        select j.ctid as place, j.queue_id
        from leasehold.job j
        where j.lease_id is not null and j.lease_until > '-infinity' and j.lease_id = any (wanted)
        for update skip locked
    ) j;
    select k.queues, k.keys into keyed_queues, keyed_keys from leasehold.return_unsent(places) k;
    if keyed_keys is not null then
        perform leasehold.advance_keys(keyed_queues, keyed_keys);
    end if;
    return coalesce(queues, '{}');
end
$$;

-- Makes jobs of expired leases ready, or dead where no attempt is left; those that are to be cancelled go. The longest
-- expired first.
--
-- The floor to go on from: below every expired lease that is left, such as one that somebody holds, and a second in the
-- past, since a claim that has not committed yet is not seen. Its lease cannot end earlier than a second after its statement
-- began, so only one whose commit takes longer than that is missed; the passes from the beginning find it.
create or replace function leasehold.reap_leases(
    floor timestamptz, at_most int,
    out jobs bigint[], out leases uuid[], out queues int[], out deads boolean[], out readied int[],
    out next_floor timestamptz
) language plpgsql as $$
declare
    first timestamptz;
    places tid[];
    going boolean[];
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
        coalesce(array_agg(j.dies), '{}'), array_agg(j.goes), array_agg(j.place)
    into jobs, leases, queues, deads, going, places
    from (
        select j.id, j.lease_id, j.queue_id, j.attempt >= j.max_attempts and not j.cancel_requested as dies,
            j.cancel_requested as goes, j.ctid as place
        from leasehold.job j
        where j.lease_id is not null and j.lease_until >= first and j.lease_until <= now()
        order by j.lease_until
        limit at_most
        for update skip locked
    ) j;

    readied := '{}';
    if places is not null then
        with given as materialized (
            select u.place, u.dies, u.goes from unnest(places, deads, going) u (place, dies, goes)
        ),
        returned as (
            update leasehold.job j
            set lease_id = null, lease_until = null, lease_duration = null, lease_stream = null,
                ready_at = greatest(j.available_at, clock_timestamp()), last_error = 'lease expired'
            from given g
            where j.ctid = g.place and not g.dies and not g.goes
        ),
        removed as (
            delete from leasehold.job j
            using given g
            where j.ctid = g.place and (g.dies or g.goes)
            returning g.goes, j.id, j.position, j.lease_number, j.enqueued_at, j.available_at, j.queue_id, j.attempt,
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
                r.traceparent, r.tracestate, r.headers, 'lease expired', r.payload, r.caller
            from removed r
            where not r.goes
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
