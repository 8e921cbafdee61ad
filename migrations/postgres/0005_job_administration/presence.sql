-- What a replica says of itself: upserts what it lists, takes out what it says is gone, and replicas that nobody has heard of
-- for `absent` microseconds. Ages are in microseconds before now. First and last are the bounds of its streams' numbers.
-- unknown_before: nothing was known of it. to_cancel: jobs leased by its streams that somebody asked to cancel, told once.
create function leasehold.attend(
    replica bigint, first bigint, last bigint, name text, version text, age bigint, anew boolean, absent bigint,
    closed bigint[], stream_ids bigint[], consumers text[], peers text[], callers text[], queue_lists text[],
    max_in_flights int[], in_flights int[], oldest_ages bigint[], stream_ages bigint[],
    unasked text[], queue_names text[], queue_streams bigint[], free_credits bigint[],
    quiet int[], queues int[], enqueued float8[], leased float8[], acked float8[], retried float8[], expired float8[],
    dead float8[],
    out unknown_before boolean, out to_cancel bigint[]
) language plpgsql as $$
declare
    gone bigint;
begin
    update leasehold.replica r
    set seen_at = clock_timestamp(), name = attend.name, version = attend.version
    where r.id = attend.replica;
    unknown_before := not found;
    if unknown_before then
        insert into leasehold.replica (id, started_at, seen_at, name, version)
        values (
            attend.replica, clock_timestamp() - age * interval '1 microsecond', clock_timestamp(), attend.name,
            attend.version
        );
    end if;

    if anew then
        delete from leasehold.replica_stream s where s.id between first and last;
        delete from leasehold.replica_demand d where d.replica = attend.replica;
        delete from leasehold.replica_rate r where r.replica = attend.replica;
    end if;
    delete from leasehold.replica_stream s where s.id = any (closed);
    delete from leasehold.replica_demand d where d.replica = attend.replica and d.queue_name = any (unasked);
    delete from leasehold.replica_rate r where r.replica = attend.replica and r.queue_id = any (quiet);

    insert into leasehold.replica_stream as s (
        id, replica, opened_at, oldest_lease_at, max_in_flight, in_flight, consumer, peer, caller, queues
    )
    select u.id, attend.replica, clock_timestamp() - u.age * interval '1 microsecond',
        clock_timestamp() - u.oldest * interval '1 microsecond', u.max_in_flight, u.in_flight, u.consumer, u.peer, u.caller,
        u.queues
    from unnest(
        stream_ids, consumers, peers, callers, queue_lists, max_in_flights, in_flights, oldest_ages, stream_ages
    ) u (id, consumer, peer, caller, queues, max_in_flight, in_flight, oldest, age)
    on conflict (id) do update set oldest_lease_at = excluded.oldest_lease_at, in_flight = excluded.in_flight;

    insert into leasehold.replica_demand as d (replica, queue_name, streams, free_credit)
    select attend.replica, u.queue_name, u.streams, u.free_credit
    from unnest(queue_names, queue_streams, free_credits) u (queue_name, streams, free_credit)
    on conflict on constraint replica_demand_pkey do update set streams = excluded.streams, free_credit = excluded.free_credit;

    insert into leasehold.replica_rate as r (replica, queue_id, enqueued, leased, acked, retried, expired, dead)
    select attend.replica, u.queue_id, u.enqueued, u.leased, u.acked, u.retried, u.expired, u.dead
    from unnest(
        queues, attend.enqueued, attend.leased, attend.acked, attend.retried, attend.expired, attend.dead
    ) u (queue_id, enqueued, leased, acked, retried, expired, dead)
    on conflict on constraint replica_rate_pkey do update set
        enqueued = excluded.enqueued, leased = excluded.leased, acked = excluded.acked, retried = excluded.retried,
        expired = excluded.expired, dead = excluded.dead;

    for gone in
        select r.id
        from leasehold.replica r
        where r.id >= 0 and r.id <> attend.replica and r.seen_at < now() - absent * interval '1 microsecond'
        limit 10
        for update skip locked
    loop
        perform leasehold.leave(gone);
    end loop;

    with taken as materialized (
        select c.ctid as place
        from leasehold.cancellation c
        where c.lease_stream between first and last
        limit 1000
        for update skip locked
    ),
    read as (
        delete from leasehold.cancellation c using taken t where c.ctid = t.place returning c.job_id
    )
    select coalesce(array_agg(r.job_id), '{}') into to_cancel from read r;
end
$$;

-- Takes out a replica with all that it wrote.
create function leasehold.leave(gone bigint) returns void language plpgsql as $$
declare
    first bigint := gone << 32;
    last bigint := gone << 32 | 4294967295;
begin
    delete from leasehold.replica r where r.id = gone;
    delete from leasehold.replica_stream s where s.id between first and last;
    delete from leasehold.replica_demand d where d.replica = gone;
    delete from leasehold.replica_rate r where r.replica = gone;
    delete from leasehold.cancellation c where c.lease_stream between first and last;
end
$$;

revoke execute on all functions in schema leasehold from public;
