-- Stock, its ledger, and reservations. There is one writer, so no units lie ready and nothing is left to be folded.

create table stock (
    item text not null,
    location text not null,
    on_hand integer not null default 0,
    held integer not null default 0 check (held between 0 and on_hand),
    primary key (item, location)
) strict, without rowid;

-- Calls that adjusted stock. Kept for as long as the ledger, whose entries name them.
create table stock_adjustment (
    id integer primary key,
    reference text not null unique,
    -- How often it came again: written at each duplicate, so that its answer is as durable as the first one.
    hits integer not null default 0,
    made_at integer not null,
    reason text not null,
    caller text not null,
    -- SHA-256 of what two calls with the reference must agree on.
    content blob not null
) strict;

-- What happened: never changed, never removed. The sums of a key's entries are its balance.
create table stock_ledger (
    id integer primary key,
    item text not null,
    location text not null,
    -- 1 adjust, 2 reserve, 3 commit, 4 release, 5 expire.
    kind integer not null,
    on_hand integer not null,
    held integer not null,
    reservation_id integer,
    adjustment_id integer,
    entered_at integer not null,
    check ((kind = 1) = (adjustment_id is not null) and (kind > 1) = (reservation_id is not null))
) strict;

create index stock_ledger_key on stock_ledger (item, location, id, on_hand, held);

create table reservation (
    -- Never given twice.
    id integer primary key autoincrement,
    reference text not null unique,
    -- How often its reference or its commit came again: written each time, so that the answer is as durable as the first one.
    hits integer not null default 0,
    -- 1 held, 2 committed, 3 released, 4 expired: the change from 1 decides between all that want to end it.
    state integer not null default 1 check (state between 1 and 4),
    created_at integer not null,
    expires_at integer not null,
    ended_at integer,
    caller text not null,
    -- SHA-256 of what two calls with the reference must agree on.
    content blob not null,
    -- What its jobs on expiry weigh.
    expiry_bytes integer not null default 0,
    -- Jobs that came with it and with its commit: JSON arrays.
    jobs text not null default '[]',
    commit_jobs text not null default '[]',
    check ((state = 1) = (ended_at is null))
) strict;

create index reservation_live on reservation (expires_at) where state = 1;
create index reservation_ended on reservation (ended_at) where state > 1;

create table reservation_line (
    reservation_id integer not null,
    -- Its place in the cart.
    line integer not null,
    item text not null,
    location text not null,
    quantity integer not null check (quantity > 0),
    expires_at integer not null,
    -- Its reservation is held.
    live integer not null default 1,
    primary key (reservation_id, line)
) strict, without rowid;

create index reservation_line_live on reservation_line (item, location, expires_at, quantity) where live = 1;

-- Jobs to be stored should a reservation expire. They go with its end, whichever it is.
create table reservation_job (
    reservation_id integer not null,
    place integer not null,
    queue_id integer not null,
    -- Microseconds.
    delay integer not null,
    priority integer not null,
    max_attempts integer not null,
    ordering_key text,
    caller text,
    content_type text not null,
    headers text,
    traceparent text,
    tracestate text,
    payload blob not null,
    primary key (reservation_id, place)
) strict;

-- Items of which no new reservations are made: those that begin with the prefix.
create table stock_switch (
    prefix text primary key,
    reason text not null,
    set_at integer not null
) strict;
