-- Keeps the budget of caller ?1: ?2 lanes, ?3 microseconds of wait, a share of ?4 millionths, at ?5. Where it has none yet there
-- must be fewer than ?6.
insert into caller_budget (caller, max_lanes, max_wait, share, set_at)
select ?1, ?2, ?3, ?4, ?5
where exists (select 1 from caller_budget where caller = ?1)
    or (select count(*) from (select 1 from caller_budget where caller > '' limit ?6)) < ?6
on conflict (caller) do update set max_lanes = excluded.max_lanes, max_wait = excluded.max_wait, share = excluded.share,
    set_at = excluded.set_at
