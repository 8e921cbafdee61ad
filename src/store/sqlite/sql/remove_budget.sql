-- Removes the budget of caller ?1.
delete from caller_budget where caller = ?1
