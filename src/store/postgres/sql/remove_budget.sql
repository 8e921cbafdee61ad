-- Removes the budget of caller $1. One row where there was one.
delete from leasehold.caller_budget b where b.caller = $1::text returning 1 as removed
