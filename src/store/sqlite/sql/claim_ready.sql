-- ?1 queue, ?2 now, ?3 floors [level 0, …, level 9], ?4 how many
-- Ready jobs, one level after the other, each walked along its index only as far as jobs are still wanted. Scheduled jobs of
-- a level are behind its range and never walked.
select id from (
    select id from job
    where queue_id = ?1 and priority = 9 and lease_id is null and blocked = 0
        and ready_at > (?3 ->> 9) and ready_at <= ?2
    order by ready_at, id limit ?4
)
union all
select id from (
    select id from job
    where queue_id = ?1 and priority = 8 and lease_id is null and blocked = 0
        and ready_at > (?3 ->> 8) and ready_at <= ?2
    order by ready_at, id limit ?4
)
union all
select id from (
    select id from job
    where queue_id = ?1 and priority = 7 and lease_id is null and blocked = 0
        and ready_at > (?3 ->> 7) and ready_at <= ?2
    order by ready_at, id limit ?4
)
union all
select id from (
    select id from job
    where queue_id = ?1 and priority = 6 and lease_id is null and blocked = 0
        and ready_at > (?3 ->> 6) and ready_at <= ?2
    order by ready_at, id limit ?4
)
union all
select id from (
    select id from job
    where queue_id = ?1 and priority = 5 and lease_id is null and blocked = 0
        and ready_at > (?3 ->> 5) and ready_at <= ?2
    order by ready_at, id limit ?4
)
union all
select id from (
    select id from job
    where queue_id = ?1 and priority = 4 and lease_id is null and blocked = 0
        and ready_at > (?3 ->> 4) and ready_at <= ?2
    order by ready_at, id limit ?4
)
union all
select id from (
    select id from job
    where queue_id = ?1 and priority = 3 and lease_id is null and blocked = 0
        and ready_at > (?3 ->> 3) and ready_at <= ?2
    order by ready_at, id limit ?4
)
union all
select id from (
    select id from job
    where queue_id = ?1 and priority = 2 and lease_id is null and blocked = 0
        and ready_at > (?3 ->> 2) and ready_at <= ?2
    order by ready_at, id limit ?4
)
union all
select id from (
    select id from job
    where queue_id = ?1 and priority = 1 and lease_id is null and blocked = 0
        and ready_at > (?3 ->> 1) and ready_at <= ?2
    order by ready_at, id limit ?4
)
union all
select id from (
    select id from job
    where queue_id = ?1 and priority = 0 and lease_id is null and blocked = 0
        and ready_at > (?3 ->> 0) and ready_at <= ?2
    order by ready_at, id limit ?4
)
limit ?4
