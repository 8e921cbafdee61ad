-- Keeping the books of one stock. All but delta_floor and expire_reservations want its row to be locked by this transaction.

-- From which transaction on a stock's deltas are looked at. A floor is no later than the transaction that wrote it, and the row
-- that has it was written by that one or one after it: a floor that lies behind its row's own transaction was counted by
-- another server, from which the row was restored, and says nothing here. What is younger than a row that was restored has
-- numbers behind the row's. (The row's number has 32 bits: taken as the nearest one to the next, which is never too low.)
create function leasehold.delta_floor(floor bigint, written_by xid) returns bigint language sql stable as $$
    select case
        when floor <= pg_snapshot_xmax(pg_current_snapshot())::text::bigint - 2147483648
            + ((written_by::text::bigint - pg_snapshot_xmax(pg_current_snapshot())::text::bigint + 2147483648) & 4294967295)
            then floor
        else 0
    end
$$;

-- Folds what others left, 10,000 rows at most; says how many it was. What lies before the oldest transaction that was running
-- when they were read is folded for good.
create function leasehold.fold_stock(of_item text, of_location text) returns bigint language plpgsql as $$
declare
    known bigint;
    floor bigint;
    folded bigint;
    more_on_hand bigint;
    more_held bigint;
    more_free bigint;
    next_floor bigint;
begin
    select s.delta_floor, leasehold.delta_floor(s.delta_floor, s.xmin)
    into known, floor
    from leasehold.stock s
    where s.item = of_item and s.location = of_location;

    with gone as (
        delete from leasehold.stock_delta d
        where d.ctid = any (array(
            select w.ctid
            from leasehold.stock_delta w
            where w.item = of_item and w.location = of_location and w.xact >= floor
            order by w.xact, w.id
            limit 10000
        ))
        returning d.on_hand, d.held, d.free
    )
    select count(1), coalesce(sum(g.on_hand), 0), coalesce(sum(g.held), 0), coalesce(sum(g.free), 0),
        pg_snapshot_xmin(pg_current_snapshot())::text::bigint
    into folded, more_on_hand, more_held, more_free, next_floor
    from gone g;

    -- Whoever has the lock folds before it writes the row, so that a floor of another server is gone by then.
    if folded > 0 or floor < known then
        update leasehold.stock s
        set on_hand = s.on_hand + more_on_hand, held = s.held + more_held, unpooled = s.unpooled + more_free,
            delta_floor = case when folded < 10000 then greatest(floor, next_floor) else floor end
        where s.item = of_item and s.location = of_location;
    end if;
    return folded;
end
$$;

-- Takes free units, wherever they are, or none: from beside the pool, then from the pool those that nobody else is about to
-- take, then those that somebody is. (Who is has no need of this stock's lock, so that this wait has an end.)
create function leasehold.take_units(of_item text, of_location text, wanted bigint) returns boolean language plpgsql as $$
declare
    beside bigint;
    floor bigint;
    missing bigint;
    got bigint := 0;
    more bigint;
begin
    select least(s.unpooled, wanted), s.unit_floor
    into beside, floor
    from leasehold.stock s
    where s.item = of_item and s.location = of_location;
    if not found then
        return false;
    end if;

    missing := wanted - beside;
    if missing > 0 then
        with taken as materialized (
            select u.ctid as place
            from leasehold.stock_unit u
            where u.item = of_item and u.location = of_location and u.unit >= floor
            order by u.unit
            limit missing
            for update skip locked
        ),
        gone as (
            delete from leasehold.stock_unit u using taken t where u.ctid = t.place returning u.unit
        )
        select count(1) into got from gone;
    end if;
    if got < missing then
        with taken as materialized (
            select u.ctid as place
            from leasehold.stock_unit u
            where u.item = of_item and u.location = of_location and u.unit >= floor
            order by u.unit
            limit missing - got
            for update
        ),
        gone as (
            delete from leasehold.stock_unit u using taken t where u.ctid = t.place returning u.unit
        )
        select count(1) into more from gone;
        got := got + more;
    end if;

    if got < missing then
        update leasehold.stock s
        set unpooled = s.unpooled + got
        where s.item = of_item and s.location = of_location and got > 0;
        return false;
    end if;
    update leasehold.stock s
    set unpooled = s.unpooled - beside
    where s.item = of_item and s.location = of_location and beside > 0;
    return true;
end
$$;

-- Fills the pool up to a number of units where less than half of them are there. Units that somebody is about to take count
-- as there. Remembers the first unit there is: those below are gone for good.
create function leasehold.fill_pool(
    of_item text, of_location text, pool int, out added int, out depth int
) language plpgsql as $$
declare
    beside bigint;
    next bigint;
    floor bigint;
    first bigint;
begin
    select s.unpooled, s.next_unit, s.unit_floor
    into beside, next, floor
    from leasehold.stock s
    where s.item = of_item and s.location = of_location;

    select count(1), min(u.unit)
    into depth, first
    from (
        select u.unit
        from leasehold.stock_unit u
        where u.item = of_item and u.location = of_location and u.unit >= floor
        order by u.unit
        limit pool
    ) u;

    added := case when depth * 2 < pool then least(beside, pool - depth) else 0 end;
    if added > 0 then
        insert into leasehold.stock_unit (item, location, unit)
        select of_item, of_location, next + n
        from generate_series(0, added - 1) n;
    end if;
    first := coalesce(first, next);
    if added > 0 or first > floor + pool then
        update leasehold.stock s
        set unpooled = s.unpooled - added, next_unit = s.next_unit + added, unit_floor = first
        where s.item = of_item and s.location = of_location;
    end if;
    depth := depth + added;
end
$$;

-- What is free of each of these stocks, all at one instant: beside the pool, in it, given back, and held past its time.
create function leasehold.free_units(items text[], locations text[]) returns bigint[] language plpgsql as $$
begin
    return (
        select array_agg(coalesce(s.unpooled + d.free + u.units + l.units, 0) order by k.n)
        from unnest(items, locations) with ordinality k (item, location, n)
        left join lateral (
            select s.unpooled, s.unit_floor, leasehold.delta_floor(s.delta_floor, s.xmin) as delta_floor
            from leasehold.stock s
            where s.item = k.item and s.location = k.location
            offset 0
        ) s on true
        cross join lateral (
            select coalesce(sum(d.free), 0) as free
            from leasehold.stock_delta d
            where d.item = k.item and d.location = k.location and d.xact >= s.delta_floor
        ) d
        cross join lateral (
            select count(1) as units
            from leasehold.stock_unit u
            where u.item = k.item and u.location = k.location and u.unit >= s.unit_floor
        ) u
        cross join lateral (
            select coalesce(sum(l.quantity), 0) as units
            from leasehold.reservation_line l
            -- The clock is read after the snapshot was taken, so that what is past its time in it is past its time here.
            where l.item = k.item and l.location = k.location and l.live
                and l.expires_at <= (select clock_timestamp())
        ) l
    );
end
$$;

-- What each of these stocks has, all at one instant. What reservations hold past their time counts as free.
create function leasehold.balances(
    items text[], locations text[], out on_hands bigint[], out helds bigint[]
) language plpgsql as $$
begin
    select array_agg(coalesce(s.on_hand + d.on_hand, 0) order by k.n),
        array_agg(coalesce(s.held + d.held - l.units, 0) order by k.n)
    into on_hands, helds
    from unnest(items, locations) with ordinality k (item, location, n)
    left join lateral (
        select s.on_hand, s.held, leasehold.delta_floor(s.delta_floor, s.xmin) as delta_floor
        from leasehold.stock s
        where s.item = k.item and s.location = k.location
        offset 0
    ) s on true
    cross join lateral (
        select coalesce(sum(d.on_hand), 0) as on_hand, coalesce(sum(d.held), 0) as held
        from leasehold.stock_delta d
        where d.item = k.item and d.location = k.location and d.xact >= s.delta_floor
    ) d
    cross join lateral (
        select coalesce(sum(l.quantity), 0) as units
        from leasehold.reservation_line l
        where l.item = k.item and l.location = k.location and l.live and l.expires_at <= now()
    ) l;
end
$$;

-- Writes down that reservations of this transaction ended: their lines, the ledger, and what is to be folded.
create function leasehold.end_lines(ended bigint[], entry_kind smallint) returns void language plpgsql as $$
begin
    with freed as (
        update leasehold.reservation_line l
        set live = false
        where l.reservation_id = any (ended)
        returning l.reservation_id, l.item, l.location, l.quantity
    ),
    entered as (
        insert into leasehold.stock_ledger (kind, on_hand, held, reservation_id, item, location)
        select entry_kind, case when entry_kind = 3 then -f.quantity else 0 end, -f.quantity, f.reservation_id, f.item,
            f.location
        from freed f
    )
    insert into leasehold.stock_delta (on_hand, held, free, item, location)
    select case when entry_kind = 3 then -sum(f.quantity) else 0 end, -sum(f.quantity),
        case when entry_kind = 3 then 0 else sum(f.quantity) end, f.item, f.location
    from freed f
    group by f.item, f.location;
end
$$;

-- Ends reservations by expiry that this transaction has locked and found held and past their time. Their jobs are left as
-- leasehold.enqueue leaves them, so that nothing can keep an expiry from its commit; those of a queue that is gone are dropped.
-- Says how many were left.
create function leasehold.expire_reservations(overdue bigint[]) returns bigint language plpgsql as $$
declare
    stored bigint;
begin
    update leasehold.reservation r
    set state = 4, ended_at = clock_timestamp()
    where r.id = any (overdue);
    perform leasehold.end_lines(overdue, 5::smallint);

    with wanted as (
        delete from leasehold.reservation_job w
        where w.reservation_id = any (overdue)
        returning w.reservation_id, w.delay, w.queue_id, w.max_attempts, w.priority, w.place, w.ordering_key, w.content_type,
            w.traceparent, w.tracestate, w.headers, w.payload
    ),
    numbered as (
        select nextval('leasehold.job_id_seq'::regclass) as id, o.delay, o.queue_id, o.max_attempts, o.priority,
            o.ordering_key, o.content_type, o.traceparent, o.tracestate, o.headers, o.payload, o.caller
        from (
            select w.delay, w.queue_id, w.max_attempts, w.priority, w.ordering_key, w.content_type, w.traceparent,
                w.tracestate, w.headers, w.payload, r.caller
            from wanted w
            cross join lateral (
                select r.caller from leasehold.reservation r where r.id = w.reservation_id offset 0
            ) r
            cross join lateral (
                select q.id from leasehold.queue q where q.id = w.queue_id and q.closing_since is null offset 0
            ) q
            order by w.reservation_id, w.place
        ) o
    ),
    jobs as (
        insert into leasehold.job (
            id, position, enqueued_at, available_at, ready_at, queue_id, max_attempts, priority, blocked, ordering_key,
            content_type, traceparent, tracestate, headers, payload, caller
        )
        select n.id, case when n.ordering_key is not null then n.id end, clock_timestamp(),
            clock_timestamp() + n.delay * interval '1 microsecond', clock_timestamp() + n.delay * interval '1 microsecond',
            n.queue_id, n.max_attempts, n.priority, true, n.ordering_key, n.content_type, n.traceparent, n.tracestate,
            n.headers, n.payload, n.caller
        from numbered n
        returning id, queue_id, ordering_key
    ),
    arrived as (
        insert into leasehold.arrival (queue_id, ordering_key, job_id)
        select j.queue_id, j.ordering_key, j.id
        from jobs j
        order by j.id
        returning id
    )
    select count(a.id) into stored from arrived a;
    return stored;
end
$$;

-- Ends reservations of a stock that are past their time, the longest overdue first and as many as it takes to free so many
-- units, 100 at most; rows that others hold are passed over. Says whether there was one.
create function leasehold.expire_stock(of_item text, of_location text, wanted bigint) returns boolean language plpgsql as $$
declare
    moment timestamptz := clock_timestamp();
    overdue bigint[];
begin
    select array_agg(o.id)
    into overdue
    from (
        select r.id, sum(l.quantity) over (order by l.expires_at, l.reservation_id) - l.quantity as before
        from (
            select l.reservation_id, l.expires_at, l.quantity
            from leasehold.reservation_line l
            where l.item = of_item and l.location = of_location and l.live and l.expires_at <= moment
            order by l.expires_at, l.reservation_id
            limit 100
        ) l
        cross join lateral (
            select r.id
            from leasehold.reservation r
            where r.id = l.reservation_id and (r.state = 1)::int = 1 and r.expires_at <= moment
            offset 0
        ) r
    ) o
    where o.before < wanted;
    if overdue is null then
        return false;
    end if;

    select array_agg(r.id)
    into overdue
    from (
        select r.id
        from unnest(overdue) o (id)
        cross join lateral (
            select r.id
            from leasehold.reservation r
            where r.id = o.id and (r.state = 1)::int = 1 and r.expires_at <= moment
            for update skip locked
        ) r
    ) r;
    if overdue is null then
        return false;
    end if;
    perform leasehold.expire_reservations(overdue);
    return true;
end
$$;
