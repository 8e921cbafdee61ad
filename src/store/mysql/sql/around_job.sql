-- ? queue, ? queue and ? ordering key, ? queue and ? ordering key and ? position
-- Whether the queue is paused, the job that holds the key, and jobs of the key that come first.
select coalesce((
        select q.paused or q.closing_since is not null from leasehold_queue q where q.id = ?
    ), 0) as paused, (
        select j.id
        from leasehold_ordering_key o force index (primary)
        straight_join leasehold_job j force index (primary) on j.id = o.head
        where o.queue_id = ? and o.ordering_key = ?
        limit 1
    ) as head, (
        select count(*)
        from (
            select 1 as one
            from leasehold_blocked b force index (primary)
            where b.queue_id = ? and b.ordering_key = ? and b.position < ?
            limit 10001
        ) first
    ) as ahead_in_key
