-- ?1 [queue, …], each once
-- The highest id ever given to a job, null before the first one; and how many of the queues take jobs.
select
    (select seq from sqlite_sequence where name = 'job') as last_id,
    (
        select count(*) from queue
        where id in (select value from json_each(?1)) and disabled_reason is null and closing_since is null
    ) as open
