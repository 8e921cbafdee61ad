-- ? reference, ? now, ? reason, ? caller, ? content
-- Takes the reference, waiting for another call that has it. One that is known is written to.
insert into leasehold_stock_adjustment (reference, made_at, reason, caller, content)
values (?, ?, ?, ?, ?)
on duplicate key update hits = leasehold_stock_adjustment.hits + 1
