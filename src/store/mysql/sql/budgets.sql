-- ? how many
-- Callers' budgets, by name.
select b.caller, b.max_lanes, b.max_wait, b.share
from leasehold_caller_budget b force index (primary)
where b.caller > ''
order by b.caller
limit ?
