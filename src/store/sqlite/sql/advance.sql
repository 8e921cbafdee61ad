-- ?1 [[queue, ordering key], …], ?2 now
-- Makes the next job of each freed key ready.
update job set blocked = 0, ready_at = max(available_at, ?2)
where blocked = 1 and id in (
    select (
        select next.id from job next
        where next.queue_id = freed.value ->> 0 and next.ordering_key = freed.value ->> 1
        order by next.position limit 1
    )
    from json_each(?1) freed
)
returning queue_id, ordering_key
