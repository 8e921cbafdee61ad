-- ? how many
select s.prefix, s.reason, s.set_at
from leasehold_stock_switch s force index (primary)
where s.prefix >= ''
order by s.prefix
limit ?
