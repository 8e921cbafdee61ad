-- Callers' budgets that were set while the broker ran.

create table caller_budget (
    caller text primary key,
    -- No cap where null.
    max_lanes integer,
    -- Microseconds.
    max_wait integer not null,
    -- Millionths of all lane time; no cap where null.
    share integer,
    set_at integer not null
) strict;
