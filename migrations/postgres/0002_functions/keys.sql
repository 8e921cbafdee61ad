-- Acts of several steps, each one call of the broker. The files in this directory are one migration, in the order keys,
-- enqueue, settle, upkeep.
--
-- The functions are VOLATILE, so that each of their statements has a snapshot of its own: what is looked at after a lock is
-- what was committed before the lock was had.
--
-- A function never changes its meaning: the next version brings one of another name, and this one goes a release later.
--
-- Locks are taken in this order: jobs (never waited for), idempotency keys, ordering keys, each sorted by queue and key.
-- Answers are arrays in the order of the items: a row per item would cost more than the work.
--
-- Plans are made once and kept, perhaps while the tables were empty, when reading all of a table looks cheap. So no
-- statement leaves the planner a choice: rows are found one by one in a lateral subquery that it cannot pull up (FOR UPDATE,
-- OFFSET 0), by "= any (array)", or by the place (ctid) at which an earlier statement of the same act locked them.

-- Lets keys go on whose head is gone. Says for each given key whether a job of it became ready, now or later. A key may be
-- given twice. Waits for the keys' rows, which no service's transaction holds.
create function leasehold.advance_keys(queues int[], keys text[]) returns boolean[] language plpgsql as $$
declare
    locked_queues int[];
    locked_keys text[];
    heads bigint[];
    places tid[];
    went_on boolean[];
begin
    -- A row that is there is locked and left as it is: a version of it for each lock would be walked by all that come later,
    -- for as long as somebody holds a snapshot.
    insert into leasehold.ordering_key as o (queue_id, ordering_key, head)
    select u.queue_id, u.ordering_key, 0
    from unnest(queues, keys) u (queue_id, ordering_key)
    group by u.queue_id, u.ordering_key
    order by u.queue_id, u.ordering_key collate "C"
    on conflict (queue_id, ordering_key) do update set head = o.head where false;

    select array_agg(u.queue_id), array_agg(u.ordering_key), array_agg(o.head), array_agg(o.place)
    into locked_queues, locked_keys, heads, places
    from (
        select k.queue_id, k.ordering_key
        from unnest(queues, keys) k (queue_id, ordering_key)
        group by k.queue_id, k.ordering_key
        order by k.queue_id, k.ordering_key collate "C"
    ) u
    cross join lateral (
        select o.head, o.ctid as place
        from leasehold.ordering_key o
        where o.queue_id = u.queue_id and o.ordering_key = u.ordering_key
        offset 0
    ) o;

    with keyed as (
        select u.n, u.queue_id, u.ordering_key, u.place, (
            select true from leasehold.job j where j.id = u.head and not j.blocked
        ) is null as free
        from unnest(locked_queues, locked_keys, heads, places)
            with ordinality u (queue_id, ordering_key, head, place, n)
    ),
    next as materialized (
        select k.n, k.place, k.free, case when k.free then (
            select b.id
            from leasehold.job b
            where b.queue_id = k.queue_id and b.ordering_key = k.ordering_key and b.blocked
            order by b.position
            limit 1
            for update
        ) end as id
        from keyed k
    ),
    readied as (
        update leasehold.job j
        set blocked = false, ready_at = greatest(j.available_at, clock_timestamp())
        where j.id = any (array(select n.id from next n where n.id is not null))
    ),
    headed as (
        update leasehold.ordering_key o set head = n.id from next n where n.id is not null and o.ctid = n.place
    ),
    emptied as (
        delete from leasehold.ordering_key o using next n where n.free and n.id is null and o.ctid = n.place
    )
    select array_agg(n.id is not null order by n.n) into went_on from next n;

    return (
        select array_agg(went_on[k.place] order by k.n)
        from (
            select u.n, dense_rank() over (order by u.queue_id, u.ordering_key collate "C") as place
            from unnest(queues, keys) with ordinality u (queue_id, ordering_key, n)
        ) k
    );
end
$$;

-- Moves jobs of these keys to their queues that leasehold.enqueue left when those did not exist yet: they come before jobs
-- that are stored later. Waits for others who do the same.
create function leasehold.place_named(queues int[], keys text[]) returns void language plpgsql as $$
declare
    strays bigint[];
    targets int[];
begin
    if (
        select a.queue_name from leasehold.arrival a where a.queue_name is not null order by a.queue_name, a.ordering_key limit 1
    ) is null then
        return;
    end if;
    select array_agg(a.job_id), array_agg(u.queue_id)
    into strays, targets
    from (select distinct k.queue_id, k.ordering_key from unnest(queues, keys) k (queue_id, ordering_key)) u
    cross join lateral (select q.name from leasehold.queue q where q.id = u.queue_id offset 0) q
    cross join lateral (
        select a.job_id from leasehold.arrival a where a.queue_name = q.name and a.ordering_key = u.ordering_key offset 0
    ) a;
    if strays is not null then
        perform from leasehold.job j where j.id = any (strays) and j.queue_id = 0 order by j.id for update;
        update leasehold.job j
        set queue_id = targets[array_position(strays, j.id)]
        where j.id = any (strays) and j.queue_id = 0;
    end if;
end
$$;
