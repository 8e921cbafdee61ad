-- Stock as such.

-- Adjusts. Outcomes: 1 made, 2 made before, 3 the reference has other adjustments, 5 busy, 6 sold out, 7 too many, of the
-- adjustment at place.
create function leasehold.adjust_stock(
    asked_reference text, content bytea, said text, asker text, pool int, items text[], locations text[], deltas bigint[],
    most bigint,
    out outcome smallint, out free bigint[], out place int, out on_hands bigint[], out helds bigint[]
) language plpgsql as $$
declare
    adjustment bigint;
    is_new boolean;
    is_same boolean;
    lost bigint[];
begin
    insert into leasehold.stock_adjustment as a (reference, content, reason, caller)
    values (asked_reference, adjust_stock.content, said, asker)
    on conflict (reference) do update set hits = a.hits + 1
    returning a.id, a.hits = 0, a.content = adjust_stock.content
    into adjustment, is_new, is_same;

    if not is_new then
        outcome := case when is_same then 2 else 3 end;
    else
        for i in 1 .. cardinality(items) loop
            insert into leasehold.stock (item, location)
            select items[i], locations[i]
            where deltas[i] > 0 and not exists (
                select from leasehold.stock s where s.item = items[i] and s.location = locations[i]
            )
            on conflict (item, location) do nothing;
            perform s.item from leasehold.stock s where s.item = items[i] and s.location = locations[i] for update;
            perform leasehold.fold_stock(items[i], locations[i]);
        end loop;

        -- Those that add want nothing to be taken.
        select t.outcome, t.free
        into adjust_stock.outcome, adjust_stock.free
        from leasehold.take_locked(
            items, locations, array(select greatest(-u.delta, 0) from unnest(deltas) with ordinality u (delta, n) order by u.n),
            pool
        ) t;
        select min(u.n)
        into place
        from unnest(items, locations, deltas) with ordinality u (item, location, delta, n)
        cross join lateral (
            select s.on_hand from leasehold.stock s where s.item = u.item and s.location = u.location offset 0
        ) s
        where u.delta > 0 and s.on_hand > most - u.delta;
    end if;
    if place is not null and outcome = 1 then
        -- What was taken for others goes back.
        for i in 1 .. cardinality(items) loop
            update leasehold.stock s
            set unpooled = s.unpooled - deltas[i]
            where s.item = items[i] and s.location = locations[i] and deltas[i] < 0;
        end loop;
        outcome := 7;
    end if;
    if outcome > 3 then
        delete from leasehold.stock_adjustment a where a.id = adjustment;
        return;
    end if;

    if outcome = 1 then
        for i in 1 .. cardinality(items) loop
            update leasehold.stock s
            set on_hand = s.on_hand + deltas[i], unpooled = s.unpooled + greatest(deltas[i], 0)
            where s.item = items[i] and s.location = locations[i];
            perform f.added from leasehold.fill_pool(items[i], locations[i], pool) f;
        end loop;
        insert into leasehold.stock_ledger (kind, on_hand, held, adjustment_id, item, location)
        select 1, u.delta, 0, adjustment, u.item, u.location
        from unnest(items, locations, deltas) with ordinality u (item, location, delta, n)
        order by u.n;
    end if;
    select b.on_hands, b.helds
    into adjust_stock.on_hands, adjust_stock.helds
    from leasehold.balances(items, locations) b;
end
$$;

-- Folds what was left of stocks, and fills their pools. Stocks that others hold are passed over.
create function leasehold.refill_stock(
    items text[], locations text[], pool int, out places int[], out folds bigint[], out adds int[], out depths int[]
) language plpgsql as $$
declare
    folded bigint;
    added int;
    depth int;
begin
    places := '{}';
    folds := '{}';
    adds := '{}';
    depths := '{}';
    for i in 1 .. cardinality(items) loop
        perform s.item
        from leasehold.stock s
        where s.item = items[i] and s.location = locations[i]
        for update skip locked;
        continue when not found;
        folded := leasehold.fold_stock(items[i], locations[i]);
        select f.added, f.depth into added, depth from leasehold.fill_pool(items[i], locations[i], pool) f;
        places := places || i;
        folds := folds || folded;
        adds := adds || added;
        depths := depths || depth;
    end loop;
end
$$;

-- Keys behind one that have something to fold.
create function leasehold.unfolded_stock(
    item text, location text, at_most int, out items text[], out locations text[]
) language plpgsql as $$
#variable_conflict use_variable
begin
    items := '{}';
    locations := '{}';
    for n in 1 .. at_most loop
        select d.item, d.location
        into item, location
        from leasehold.stock_delta d
        where (d.item, d.location) > (item, location)
        order by d.item, d.location
        limit 1;
        exit when not found;
        items := items || item;
        locations := locations || location;
    end loop;
end
$$;

-- Compares the books of keys behind one, of one item alone where it is named. The figures of a key
-- are of one instant, and counted as all else counts them: what lies below a floor that it should not shows as a difference.
create function leasehold.verify_stock(
    only_item text, item text, location text, at_most int,
    out items text[], out locations text[], out entered_on_hand bigint[], out entered_held bigint[], out on_hands bigint[],
    out helds bigint[], out lines bigint[], out frees bigint[]
) language plpgsql as $$
#variable_conflict use_variable
declare
    figures bigint[];
begin
    items := '{}';
    locations := '{}';
    for n in 1 .. at_most loop
        select k.item, k.location
        into item, location
        from (
            (
                select s.item, s.location
                from leasehold.stock s
                where (s.item, s.location) > (item, location)
                order by s.item, s.location
                limit 1
            )
            union all
            (
                select g.item, g.location
                from leasehold.stock_ledger g
                where (g.item, g.location) > (item, location)
                order by g.item, g.location
                limit 1
            )
        ) k
        order by k.item, k.location
        limit 1;
        exit when not found or only_item is not null and item <> only_item;

        select array[
            g.on_hand, g.held, coalesce(s.on_hand, 0) + d.on_hand, coalesce(s.held, 0) + d.held, l.units,
            coalesce(s.unpooled, 0) + d.free + u.units
        ]
        into figures
        from (
            select coalesce(sum(g.on_hand), 0) as on_hand, coalesce(sum(g.held), 0) as held
            from leasehold.stock_ledger g
            where g.item = item and g.location = location
        ) g
        left join lateral (
            select s.on_hand, s.held, s.unpooled, s.unit_floor, leasehold.delta_floor(s.delta_floor, s.xmin) as delta_floor
            from leasehold.stock s
            where s.item = item and s.location = location
            offset 0
        ) s on true
        cross join lateral (
            select coalesce(sum(d.on_hand), 0) as on_hand, coalesce(sum(d.held), 0) as held, coalesce(sum(d.free), 0) as free
            from leasehold.stock_delta d
            where d.item = item and d.location = location and d.xact >= coalesce(s.delta_floor, 0)
        ) d
        cross join lateral (
            select count(1) as units
            from leasehold.stock_unit u
            where u.item = item and u.location = location and u.unit >= coalesce(s.unit_floor, 0)
        ) u
        cross join lateral (
            select coalesce(sum(l.quantity), 0) as units
            from leasehold.reservation_line l
            where l.item = item and l.location = location and l.live
        ) l;

        items := items || item;
        locations := locations || location;
        entered_on_hand := entered_on_hand || figures[1];
        entered_held := entered_held || figures[2];
        on_hands := on_hands || figures[3];
        helds := helds || figures[4];
        lines := lines || figures[5];
        frees := frees || figures[6];
    end loop;
end
$$;

-- Functions are open to everybody by default. Who may call which is said in docs/roles.sql.
revoke execute on all functions in schema leasehold from public;
