-- All callers' budgets, ?1 at most.
select caller, max_lanes, max_wait, share from caller_budget where caller > '' order by caller
limit ?1
