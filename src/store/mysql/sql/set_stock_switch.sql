-- ? prefix, ? reason, ? now, ? prefix again, ? how many there may be
-- Where the prefix has none yet there must be fewer than that.
insert into leasehold_stock_switch (prefix, reason, set_at)
select ?, ?, ?
from (
    select count(*) as all_of_them, coalesce(sum(s.prefix = ?), 0) as own
    from leasehold_stock_switch s force index (primary)
    where s.prefix >= ''
) kept
where kept.own > 0 or kept.all_of_them < ?
on duplicate key update reason = values(reason), set_at = values(set_at)
