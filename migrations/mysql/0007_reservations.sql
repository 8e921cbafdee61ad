-- Stock, its ledger, and reservations. A version that does not know these tables is not concerned by them.
--
-- For every key: on_hand - held = unpooled + rows in leasehold_stock_unit, each with what its rows in leasehold_stock_delta
-- add. An entry of the ledger goes with every change, in its transaction.
--
-- References are primary keys and not secondary ones: a repeated one would lock the gap beside it otherwise.

-- A balance and where its free units are. Written under its own lock alone; whoever holds it folds leasehold_stock_delta into
-- it.
create table if not exists leasehold_stock (
    item varbinary(200) not null,
    location varbinary(200) not null,
    on_hand bigint not null default 0,
    held bigint not null default 0,
    -- Free units that are not in leasehold_stock_unit.
    unpooled bigint not null default 0,
    -- Number of the next unit put into leasehold_stock_unit: numbers only rise.
    next_unit bigint not null default 1,
    -- Units below are gone for good: where walks begin.
    unit_floor bigint not null default 1,
    -- What was left to be folded before this instant is folded, as a rule.
    delta_floor bigint not null default 0,
    primary key (item, location),
    check (held >= 0 and held <= on_hand),
    check (unpooled >= 0)
) engine = InnoDB row_format = dynamic;

-- next
-- Free units that a reservation may take without the lock of their stock.
create table if not exists leasehold_stock_unit (
    item varbinary(200) not null,
    location varbinary(200) not null,
    unit bigint not null,
    primary key (item, location, unit)
) engine = InnoDB row_format = dynamic;

-- next
-- What acts without the lock of the stock leave to be folded into it. Append-only for them.
create table if not exists leasehold_stock_delta (
    item varbinary(200) not null,
    location varbinary(200) not null,
    made_at bigint not null,
    reservation_id bigint not null,
    -- As in leasehold_stock_ledger.
    kind tinyint not null,
    on_hand bigint not null,
    held bigint not null,
    -- Units that are free again, to be added to leasehold_stock.unpooled.
    free bigint not null,
    primary key (item, location, made_at, reservation_id, kind)
) engine = InnoDB row_format = dynamic;

-- next
-- Calls that adjusted stock. Kept for as long as the ledger, whose entries name them.
create table if not exists leasehold_stock_adjustment (
    reference varbinary(200) not null primary key,
    id bigint not null auto_increment,
    -- How often it came again: written at each duplicate, so that its answer is as durable as the first one.
    hits bigint not null default 0,
    made_at bigint not null,
    reason text character set utf8mb4 collate utf8mb4_bin not null,
    caller varchar(64) character set ascii collate ascii_bin not null,
    -- SHA-256 of what two calls with the reference must agree on.
    content binary(32) not null,
    key stock_adjustment_id (id)
) engine = InnoDB row_format = dynamic;

-- next
-- What happened: never changed, never removed. The sums of a key's entries are its balance.
create table if not exists leasehold_stock_ledger (
    item varbinary(200) not null,
    location varbinary(200) not null,
    -- Drawn after the units were had: no entry takes what those before it did not leave.
    id bigint not null auto_increment,
    -- 1 adjust, 2 reserve, 3 commit, 4 release, 5 expire.
    kind tinyint not null,
    on_hand bigint not null,
    held bigint not null,
    reservation_id bigint,
    adjustment_id bigint,
    entered_at bigint not null,
    primary key (item, location, id),
    key stock_ledger_id (id)
) engine = InnoDB row_format = dynamic;

-- next
create table if not exists leasehold_reservation (
    reference varbinary(200) not null primary key,
    id bigint not null auto_increment,
    -- How often its reference or its commit came again: written each time, so that the answer is as durable as the first one.
    hits bigint not null default 0,
    -- 1 held, 2 committed, 3 released, 4 expired: the change from 1 decides between all that want to end it.
    state tinyint not null default 1,
    created_at bigint not null,
    expires_at bigint not null,
    -- As expires_at while it is held, then null, so that an index holds no more than what may expire.
    live_until bigint,
    ended_at bigint,
    caller varchar(64) character set ascii collate ascii_bin not null,
    -- SHA-256 of what two calls with the reference must agree on.
    content binary(32) not null,
    -- What its jobs on expiry weigh.
    expiry_bytes bigint not null default 0,
    -- Jobs that came with it and with its commit: a JSON array of numbers; null where there are none.
    jobs text character set ascii collate ascii_bin,
    commit_jobs text character set ascii collate ascii_bin,
    key reservation_id (id),
    key reservation_live (live_until, id),
    key reservation_ended (ended_at, id)
) engine = InnoDB row_format = dynamic;

-- next
create table if not exists leasehold_reservation_line (
    reservation_id bigint not null,
    -- Its place in the cart.
    line smallint not null,
    item varbinary(200) not null,
    location varbinary(200) not null,
    quantity int not null,
    -- As in leasehold_reservation.
    live_until bigint,
    primary key (reservation_id, line),
    key reservation_line_live (item, location, live_until, quantity)
) engine = InnoDB row_format = dynamic;

-- next
-- Jobs to be stored should a reservation expire. They go with its end, whichever it is.
create table if not exists leasehold_reservation_job (
    reservation_id bigint not null,
    place smallint not null,
    queue_id int not null,
    -- Microseconds.
    delay bigint not null,
    priority tinyint not null,
    max_attempts int not null,
    ordering_key varbinary(200),
    caller varchar(64) character set ascii collate ascii_bin,
    content_type varchar(200) character set utf8mb4 collate utf8mb4_bin not null,
    traceparent varchar(512) character set utf8mb4 collate utf8mb4_bin,
    tracestate varchar(512) character set utf8mb4 collate utf8mb4_bin,
    headers mediumtext character set utf8mb4 collate utf8mb4_bin,
    payload mediumblob not null,
    primary key (reservation_id, place)
) engine = InnoDB row_format = dynamic;

-- next
-- Items of which no new reservations are made: those that begin with the prefix.
create table if not exists leasehold_stock_switch (
    prefix varbinary(200) not null primary key,
    reason text character set utf8mb4 collate utf8mb4_bin not null,
    set_at bigint not null
) engine = InnoDB row_format = dynamic;

-- next
-- Stocks for people, with what is left to be folded. What reservations hold past their time is still held here.
create or replace sql security invoker view leasehold_stocks as
select cast(s.item as char(200) character set utf8mb4) as item,
    cast(s.location as char(200) character set utf8mb4) as location,
    cast(s.on_hand + coalesce((
        select sum(d.on_hand) from leasehold_stock_delta d where d.item = s.item and d.location = s.location
    ), 0) as signed) as on_hand,
    cast(s.held + coalesce((
        select sum(d.held) from leasehold_stock_delta d where d.item = s.item and d.location = s.location
    ), 0) as signed) as held,
    cast(s.on_hand - s.held + coalesce((
        select sum(d.on_hand - d.held) from leasehold_stock_delta d where d.item = s.item and d.location = s.location
    ), 0) as signed) as available
from leasehold_stock s;

-- next
-- Reservations for people: times in UTC, whatever the session's time zone.
create or replace sql security invoker view leasehold_reservations as
select r.id, cast(r.reference as char(200) character set utf8mb4) as reference,
    case r.state when 1 then 'held' when 2 then 'committed' when 3 then 'released' else 'expired' end as state,
    timestampadd(microsecond, r.created_at, timestamp '1970-01-01 00:00:00') as created_at_utc,
    timestampadd(microsecond, r.expires_at, timestamp '1970-01-01 00:00:00') as expires_at_utc,
    timestampadd(microsecond, r.ended_at, timestamp '1970-01-01 00:00:00') as ended_at_utc,
    l.line, cast(l.item as char(200) character set utf8mb4) as item,
    cast(l.location as char(200) character set utf8mb4) as location, l.quantity, r.caller
from leasehold_reservation r
left join leasehold_reservation_line l on l.reservation_id = r.id;

-- next
-- The ledger for people.
create or replace sql security invoker view leasehold_stock_entries as
select e.id, cast(e.item as char(200) character set utf8mb4) as item,
    cast(e.location as char(200) character set utf8mb4) as location,
    case e.kind
        when 1 then 'adjust' when 2 then 'reserve' when 3 then 'commit' when 4 then 'release' else 'expire'
    end as kind,
    e.on_hand, e.held, e.reservation_id, cast(a.reference as char(200) character set utf8mb4) as reference, a.reason,
    timestampadd(microsecond, e.entered_at, timestamp '1970-01-01 00:00:00') as entered_at_utc
from leasehold_stock_ledger e
left join leasehold_stock_adjustment a on a.id = e.adjustment_id;
