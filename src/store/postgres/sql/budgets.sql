-- All callers' budgets, $1 at most.
select b.caller, b.max_lanes, b.max_wait, b.share from leasehold.caller_budget b
where b.caller > '' order by b.caller limit $1::bigint
