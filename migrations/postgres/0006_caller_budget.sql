-- Callers' budgets that were set while brokers ran: every replica reads them. A version that does not know the table goes by
-- its configuration alone.

create table leasehold.caller_budget (
    caller text collate "C" primary key,
    -- No cap where null.
    max_lanes int,
    -- Microseconds.
    max_wait bigint not null,
    -- Millionths of all lane time; no cap where null.
    share int,
    set_at timestamptz not null default clock_timestamp()
);
