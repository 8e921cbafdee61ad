-- Callers' budgets that were set while brokers ran: every replica reads them.
create table if not exists leasehold_caller_budget (
    caller varchar(64) character set ascii collate ascii_bin not null primary key,
    -- No cap where null.
    max_lanes int,
    -- Microseconds.
    max_wait bigint not null,
    -- Millionths of all lane time; no cap where null.
    share int,
    set_at bigint not null
) engine = InnoDB row_format = dynamic;
