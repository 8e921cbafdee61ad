-- Ends of reservations, and what comes before and after one. Locks as in reserving.sql.

-- Ends a reservation: committed (2) or released (3). Outcomes: 1 now, 2 it had ended before, null: there is none. (The state
-- is asked for oddly where a row is looked up by its id, so that no plan takes the index on what may expire.)
create function leasehold.end_reservation(
    asked bigint, new_state smallint, asker text,
    queues int[], payloads bytea[], content_types text[], header_texts text[], priorities smallint[], delays bigint[],
    starts timestamptz[], attempts int[], ordering_keys text[], idempotency_keys text[], contents bytea[],
    retentions bigint[], traceparents text[], tracestates text[],
    out outcome smallint,
    out job_ids bigint[], out ready_ats timestamptz[], out duplicates boolean[], out stored_at timestamptz,
    out id bigint, out reference text, out state smallint, out created_at timestamptz, out expires_at timestamptz,
    out ended_at timestamptz, out jobs bigint[], out commit_jobs bigint[], out items text[], out locations text[],
    out quantities int[]
) language plpgsql as $$
#variable_conflict use_column
begin
    update leasehold.reservation r
    set state = new_state, ended_at = clock_timestamp()
    where r.id = asked and (r.state = 1)::int = 1;
    if found then
        outcome := 1;
        -- The ledger's kinds are one further than the states.
        perform leasehold.end_lines(array[asked], (new_state + 1)::smallint);
        delete from leasehold.reservation_job w where w.reservation_id = asked;
        if cardinality(queues) > 0 then
            select e.ids, e.ready_ats, e.duplicates, e.stored_at
            into end_reservation.job_ids, end_reservation.ready_ats, end_reservation.duplicates, end_reservation.stored_at
            from leasehold.enqueue_open(
                queues, payloads, content_types, header_texts, priorities, delays, starts, attempts, ordering_keys,
                idempotency_keys, contents, retentions, traceparents, tracestates, asker
            ) e;
            update leasehold.reservation r set commit_jobs = job_ids where r.id = asked;
        end if;
    else
        update leasehold.reservation r set hits = r.hits + 1 where r.id = asked;
        if not found then
            return;
        end if;
        outcome := 2;
    end if;

    select f.id, f.reference, f.state, f.created_at, f.expires_at, f.ended_at, f.jobs, f.commit_jobs, f.items, f.locations,
        f.quantities
    into end_reservation.id, end_reservation.reference, end_reservation.state, end_reservation.created_at,
        end_reservation.expires_at, end_reservation.ended_at, end_reservation.jobs, end_reservation.commit_jobs,
        end_reservation.items, end_reservation.locations, end_reservation.quantities
    from leasehold.find_reservation(asked, null) f;
end
$$;

-- Moves the expiry of a reservation that is held to so long after now, never back; then the reservation as it is.
create function leasehold.extend_reservation(
    asked bigint, time_to_live bigint, out id bigint, out reference text, out state smallint, out created_at timestamptz,
    out expires_at timestamptz, out ended_at timestamptz, out jobs bigint[], out commit_jobs bigint[], out items text[],
    out locations text[], out quantities int[]
) language plpgsql as $$
#variable_conflict use_column
declare
    until timestamptz;
begin
    update leasehold.reservation r
    set expires_at = greatest(r.expires_at, clock_timestamp() + time_to_live * interval '1 microsecond')
    where r.id = asked and (r.state = 1)::int = 1
    returning r.expires_at into until;
    if found then
        update leasehold.reservation_line l set expires_at = until where l.reservation_id = asked;
    else
        update leasehold.reservation r set hits = r.hits + 1 where r.id = asked;
    end if;

    select f.id, f.reference, f.state, f.created_at, f.expires_at, f.ended_at, f.jobs, f.commit_jobs, f.items, f.locations,
        f.quantities
    into extend_reservation.id, extend_reservation.reference, extend_reservation.state, extend_reservation.created_at,
        extend_reservation.expires_at, extend_reservation.ended_at, extend_reservation.jobs,
        extend_reservation.commit_jobs, extend_reservation.items, extend_reservation.locations,
        extend_reservation.quantities
    from leasehold.find_reservation(asked, null) f;
end
$$;

-- Ends reservations past their time that expire after the floor, the longest overdue first. Lags are how late each was, in
-- microseconds. The floor to go on from, as in reap_leases.
create function leasehold.sweep_reservations(
    floor timestamptz, at_most int, out lags bigint[], out stored bigint, out next_floor timestamptz
) language plpgsql as $$
declare
    overdue bigint[];
begin
    select array_agg(o.id), array_agg((extract(epoch from clock_timestamp() - o.expires_at) * 1000000)::bigint)
    into overdue, lags
    from (
        select r.id, r.expires_at
        from leasehold.reservation r
        where r.state = 1 and r.expires_at > floor and r.expires_at <= now()
        order by r.expires_at
        limit at_most
        for update skip locked
    ) o;
    lags := coalesce(lags, '{}');
    stored := 0;
    if overdue is not null then
        stored := leasehold.expire_reservations(overdue);
    end if;

    next_floor := greatest(floor, least(now() - interval '1 second', (
        select r.expires_at - interval '1 microsecond'
        from leasehold.reservation r
        where r.state = 1 and r.expires_at > floor and r.expires_at <= now()
        order by r.expires_at
        limit 1
    )));
end
$$;

-- Removes reservations that ended so many microseconds ago. The floor to go on from, as in reap_leases.
create function leasehold.prune_reservations(
    floor timestamptz, retention bigint, at_most int, out removed bigint, out next_floor timestamptz
) language plpgsql as $$
declare
    before timestamptz := now() - retention * interval '1 microsecond';
    gone bigint[];
begin
    select array_agg(o.id)
    into gone
    from (
        select r.id
        from leasehold.reservation r
        where r.state > 1 and r.ended_at > floor and r.ended_at <= before
        order by r.ended_at
        limit at_most
        for update skip locked
    ) o;
    removed := coalesce(cardinality(gone), 0);
    if gone is not null then
        delete from leasehold.reservation_line l where l.reservation_id = any (gone);
        delete from leasehold.reservation r where r.id = any (gone);
    end if;

    next_floor := greatest(floor, least(before - interval '1 minute', (
        select r.ended_at - interval '1 microsecond'
        from leasehold.reservation r
        where r.state > 1 and r.ended_at > floor and r.ended_at <= before
        order by r.ended_at
        limit 1
    )));
end
$$;
