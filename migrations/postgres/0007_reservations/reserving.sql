-- Reservations. Locks are taken in this order: the reservation's own row, rows of stock in the order of their keys, other
-- reservations and units (passed over where others hold them, but for units that are about to be taken), keys of jobs.

-- A reservation as it is; nothing where there is none.
create function leasehold.find_reservation(
    by_id bigint, by_reference text, out id bigint, out reference text, out state smallint, out created_at timestamptz,
    out expires_at timestamptz, out ended_at timestamptz, out jobs bigint[], out commit_jobs bigint[], out items text[],
    out locations text[], out quantities int[]
) language plpgsql as $$
begin
    if by_id is null then
        by_id := (select r.id from leasehold.reservation r where r.reference = by_reference);
    end if;
    select r.id, r.reference, r.state, r.created_at, r.expires_at, r.ended_at, r.jobs, r.commit_jobs, l.items, l.locations,
        l.quantities
    into id, reference, state, created_at, expires_at, ended_at, jobs, commit_jobs, items, locations, quantities
    from leasehold.reservation r
    cross join lateral (
        select array_agg(l.item order by l.line) as items, array_agg(l.location order by l.line) as locations,
            array_agg(l.quantity order by l.line) as quantities
        from leasehold.reservation_line l
        where l.reservation_id = r.id
    ) l
    where r.id = by_id;
end
$$;

-- Stores jobs as Enqueue does, or raises LH002 where one of their queues takes none.
create function leasehold.enqueue_open(
    queues int[], payloads bytea[], content_types text[], header_texts text[], priorities smallint[], delays bigint[],
    starts timestamptz[], attempts int[], ordering_keys text[], idempotency_keys text[], contents bytea[],
    retentions bigint[], traceparents text[], tracestates text[], enqueuer text,
    out ids bigint[], out ready_ats timestamptz[], out duplicates boolean[], out stored_at timestamptz
) language plpgsql as $$
begin
    if exists (
        select
        from unnest(queues) u (id)
        left join lateral (
            select q.id
            from leasehold.queue q
            where q.id = u.id and q.disabled_reason is null and q.closing_since is null
            offset 0
        ) q on true
        where q.id is null
    ) then
        raise exception 'a queue takes no jobs' using errcode = 'LH002';
    end if;
    select e.ids, e.ready_ats, e.duplicates, e.stored_at
    into ids, ready_ats, duplicates, stored_at
    from leasehold.enqueue_keyed_by(
        queues, payloads, content_types, header_texts, priorities, delays, starts, attempts, ordering_keys, idempotency_keys,
        contents, retentions, traceparents, tracestates, false, enqueuer
    ) e;
end
$$;

-- Whether pools hold units for all lines, as a plain look sees it.
create function leasehold.pools_suffice(
    items text[], locations text[], quantities int[]
) returns boolean language plpgsql as $$
begin
    return not exists (
        select
        from unnest(items, locations, quantities) l (item, location, quantity)
        left join lateral (
            select s.unit_floor
            from leasehold.stock s
            where s.item = l.item and s.location = l.location
            offset 0
        ) s on true
        left join lateral (
            select u.unit
            from leasehold.stock_unit u
            where u.item = l.item and u.location = l.location and u.unit >= s.unit_floor
            order by u.unit
            limit 1 offset l.quantity - 1
        ) u on true
        where u.unit is null
    );
end
$$;

-- Takes units of all lines that lie in pools and that nobody else is about to take, or none; waits for nothing. Says which
-- lines' pools are less than half full then; null where there were too few units.
create function leasehold.take_pooled(
    items text[], locations text[], quantities int[], pool int
) returns smallint[] language plpgsql as $$
declare
    low smallint[];
    complete boolean;
begin
    with taken as materialized (
        select l.n, u.place, u.unit, s.next_unit
        from unnest(items, locations, quantities) with ordinality l (item, location, quantity, n)
        cross join lateral (
            select s.unit_floor, s.next_unit
            from leasehold.stock s
            where s.item = l.item and s.location = l.location
            offset 0
        ) s
        cross join lateral (
            select u.ctid as place, u.unit
            from leasehold.stock_unit u
            where u.item = l.item and u.location = l.location and u.unit >= s.unit_floor
            order by u.unit
            limit l.quantity
            for update skip locked
        ) u
    ),
    whole as materialized (
        select count(1) = (select sum(q) from unnest(quantities) q) as complete from taken
    ),
    gone as (
        delete from leasehold.stock_unit u
        using taken t
        where u.ctid = t.place and (select w.complete from whole w)
    )
    select array_agg(lines.n) filter (where lines.units * 2 < pool), (select w.complete from whole w)
    into low, complete
    from (select t.n, max(t.next_unit - t.unit - 1) as units, min(t.unit) from taken t group by t.n) lines;

    return case when complete then coalesce(low, '{}') end;
end
$$;

-- Takes units of all lines, wherever they are, with the rows of their stock locked. Outcomes: 1 taken, 6 sold out, 5 somebody
-- is ending a reservation whose units are missing. For 6, what was free of each line at one instant.
create function leasehold.take_locked(
    items text[], locations text[], quantities bigint[], pool int, out outcome smallint, out free bigint[]
) language plpgsql as $$
declare
    taken int;
    progress boolean;
begin
    for i in 1 .. cardinality(items) loop
        perform s.item from leasehold.stock s where s.item = items[i] and s.location = locations[i] for update;
        perform leasehold.fold_stock(items[i], locations[i]);
    end loop;

    loop
        taken := 0;
        while taken < cardinality(items)
            and leasehold.take_units(items[taken + 1], locations[taken + 1], quantities[taken + 1])
        loop
            taken := taken + 1;
        end loop;
        if taken = cardinality(items) then
            outcome := 1;
            return;
        end if;
        for i in 1 .. taken loop
            update leasehold.stock s
            set unpooled = s.unpooled + quantities[i]
            where s.item = items[i] and s.location = locations[i];
        end loop;

        free := leasehold.free_units(items, locations);
        if exists (select from unnest(quantities, free) f (wanted, free) where f.free < f.wanted) then
            outcome := 6;
            return;
        end if;

        -- There is enough of everything, so some of it is held past its time, or was given back a moment ago.
        progress := false;
        for i in 1 .. cardinality(items) loop
            progress := leasehold.expire_stock(items[i], locations[i], quantities[i]) or progress;
            progress := leasehold.fold_stock(items[i], locations[i]) > 0 or progress;
        end loop;
        if not progress then
            outcome := 5;
            return;
        end if;
    end loop;
end
$$;

-- Reserves. Outcomes: 1 new, 2 known, 3 known with other lines, 4 short (fast alone), 5 busy, 6 sold out. The fast way says
-- so by a plain look, which writes and locks nothing: once something is sold out, that is what most buyers hear.
create function leasehold.reserve(
    slow boolean, asked_reference text, content bytea, time_to_live bigint, asker text, pool int,
    asked_items text[], asked_locations text[], asked_quantities int[],
    queues int[], payloads bytea[], content_types text[], header_texts text[], priorities smallint[], delays bigint[],
    starts timestamptz[], attempts int[], ordering_keys text[], idempotency_keys text[], contents bytea[],
    retentions bigint[], traceparents text[], tracestates text[],
    later_queues int[], later_payloads bytea[], later_content_types text[], later_headers text[],
    later_priorities smallint[], later_delays bigint[], later_attempts int[], later_ordering_keys text[],
    later_traceparents text[], later_tracestates text[],
    out outcome smallint, out low smallint[], out free bigint[],
    out job_ids bigint[], out ready_ats timestamptz[], out duplicates boolean[], out stored_at timestamptz,
    out id bigint, out reference text, out state smallint, out created_at timestamptz, out expires_at timestamptz,
    out ended_at timestamptz, out jobs bigint[], out commit_jobs bigint[], out items text[], out locations text[],
    out quantities int[]
) language plpgsql as $$
#variable_conflict use_column
declare
    is_new boolean;
    is_same boolean;
    made_at timestamptz := clock_timestamp();
    until timestamptz;
begin
    if not slow and not leasehold.pools_suffice(asked_items, asked_locations, asked_quantities) then
        free := leasehold.free_units(asked_items, asked_locations);
        outcome := case
            -- Looked up after what is free: unknown now, it was unknown then.
            when exists (select from unnest(asked_quantities, free) f (wanted, free) where f.free < f.wanted)
                and not exists (select from leasehold.reservation r where r.reference = asked_reference) then 6
            else 4
        end;
        return;
    end if;

    -- Nothing has been locked yet: another call with this reference may be waited for.
    insert into leasehold.reservation as r (reference, content, caller, created_at, expires_at)
    values (
        asked_reference, reserve.content, asker, made_at, made_at + time_to_live * interval '1 microsecond'
    )
    on conflict (reference) do update set hits = r.hits + 1
    returning r.id, r.expires_at, r.hits = 0, r.content = reserve.content
    into reserve.id, until, is_new, is_same;

    if not is_new then
        outcome := case when is_same then 2 else 3 end;
    elsif slow then
        select t.outcome, t.free
        into reserve.outcome, reserve.free
        from leasehold.take_locked(asked_items, asked_locations, asked_quantities::bigint[], pool) t;
        if outcome = 1 then
            for i in 1 .. cardinality(asked_items) loop
                update leasehold.stock s
                set held = s.held + asked_quantities[i]
                where s.item = asked_items[i] and s.location = asked_locations[i];
                perform f.added from leasehold.fill_pool(asked_items[i], asked_locations[i], pool) f;
            end loop;
        end if;
    else
        low := leasehold.take_pooled(asked_items, asked_locations, asked_quantities, pool);
        outcome := case when low is null then 4 else 1 end;
        if outcome = 1 then
            insert into leasehold.stock_delta (on_hand, held, free, item, location)
            select 0, u.quantity, 0, u.item, u.location
            from unnest(asked_items, asked_locations, asked_quantities) u (item, location, quantity);
        end if;
    end if;

    -- As if it had never been, but what was found to be over stays so.
    if outcome > 3 then
        delete from leasehold.reservation r where r.id = reserve.id;
        return;
    end if;
    if outcome = 1 then
        insert into leasehold.reservation_line (reservation_id, line, item, location, quantity, expires_at)
        select reserve.id, u.n, u.item, u.location, u.quantity, until
        from unnest(asked_items, asked_locations, asked_quantities) with ordinality u (item, location, quantity, n);

        insert into leasehold.stock_ledger (kind, on_hand, held, reservation_id, item, location)
        select 2, 0, u.quantity, reserve.id, u.item, u.location
        from unnest(asked_items, asked_locations, asked_quantities) with ordinality u (item, location, quantity, n)
        order by u.n;

        if cardinality(later_queues) > 0 then
            insert into leasehold.reservation_job (
                reservation_id, place, queue_id, payload, content_type, headers, priority, delay, max_attempts, ordering_key,
                traceparent, tracestate
            )
            select reserve.id, u.n, u.queue_id, u.payload, u.content_type, u.header, u.priority, coalesce(u.delay, 0),
                u.attempt, u.ordering_key, u.traceparent, u.tracestate
            from unnest(
                later_queues, later_payloads, later_content_types, later_headers, later_priorities, later_delays,
                later_attempts, later_ordering_keys, later_traceparents, later_tracestates
            ) with ordinality u (
                queue_id, payload, content_type, header, priority, delay, attempt, ordering_key, traceparent, tracestate, n
            );
        end if;

        if cardinality(queues) > 0 then
            select e.ids, e.ready_ats, e.duplicates, e.stored_at
            into reserve.job_ids, reserve.ready_ats, reserve.duplicates, reserve.stored_at
            from leasehold.enqueue_open(
                queues, payloads, content_types, header_texts, priorities, delays, starts, attempts, ordering_keys,
                idempotency_keys, contents, retentions, traceparents, tracestates, asker
            ) e;
            update leasehold.reservation r set jobs = job_ids where r.id = reserve.id;
        end if;
    end if;

    select f.id, f.reference, f.state, f.created_at, f.expires_at, f.ended_at, f.jobs, f.commit_jobs, f.items, f.locations,
        f.quantities
    into reserve.id, reserve.reference, reserve.state, reserve.created_at, reserve.expires_at, reserve.ended_at,
        reserve.jobs, reserve.commit_jobs, reserve.items, reserve.locations, reserve.quantities
    from leasehold.find_reservation(reserve.id, null) f;
end
$$;
