-- ? caller, ? lanes, ? microseconds of wait, ? share in millionths, ? now, ? caller again, ? how many there may be
-- Where the caller has none yet there must be fewer than that.
insert into leasehold_caller_budget (caller, max_lanes, max_wait, share, set_at)
select ?, ?, ?, ?, ?
from (
    select count(*) as all_of_them, coalesce(sum(b.caller = ?), 0) as own
    from leasehold_caller_budget b force index (primary)
    where b.caller > ''
) kept
where kept.own > 0 or kept.all_of_them < ?
on duplicate key update
    max_lanes = values(max_lanes), max_wait = values(max_wait), share = values(share), set_at = values(set_at)
