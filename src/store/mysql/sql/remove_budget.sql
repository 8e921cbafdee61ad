-- ? caller
delete from leasehold_caller_budget where caller = ?
