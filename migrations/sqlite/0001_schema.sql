-- The PostgreSQL shape on SQLite. Times are whole microseconds since 1970, byte strings blobs; text compares byte for byte,
-- which is SQLite's default. No ordering_key and no arrival: with one writer, whether a job of a key is stored already is
-- a look into an index, and no transaction but the broker's own writes here.

create table schema_migration (
    number integer primary key,
    name text not null,
    applied_at integer not null
) strict;

-- The last instant at which anything was written: the clock never starts before it.
create table clock (
    one integer primary key check (one = 1),
    last_at integer not null
) strict;
insert into clock (one, last_at) values (1, 0);

create table queue (
    id integer primary key autoincrement,
    name text not null unique,
    lease_duration integer not null,
    max_attempts integer not null,
    backoff_base integer not null,
    backoff_cap integer not null,
    idempotency_retention integer not null,
    dead_retention integer not null,
    max_backlog_jobs integer,
    max_backlog_bytes integer
) strict;

-- autoincrement: the id of a job that is gone is never given again.
create table job (
    id integer primary key autoincrement,
    queue_id integer not null,
    priority integer not null,
    -- When the producer wants it to start.
    available_at integer not null,
    -- When it became ready, or will: its place in the claim's order.
    ready_at integer not null,
    -- Its place in its ordering key, where it has one: the id at enqueue.
    position integer,
    ordering_key text,
    blocked integer not null,
    attempt integer not null default 0,
    max_attempts integer not null,
    lease_number integer not null default 0,
    lease_id blob,
    lease_until integer,
    lease_duration integer,
    cancel_requested integer not null default 0,
    enqueued_at integer not null,
    idempotency_key text,
    content_type text not null,
    -- A JSON object of texts; null where there are none.
    headers text,
    traceparent text,
    tracestate text,
    last_error text,
    -- Last, so that no other column is read past a long one.
    payload blob not null,
    constraint job_priority_is_a_level check (priority between 0 and 9),
    constraint job_lease_is_whole check ((lease_id is null) = (lease_until is null)),
    constraint job_blocked_has_no_lease check (not (blocked and lease_id is not null))
) strict;

create index job_ready on job (queue_id, priority desc, ready_at, id) where lease_id is null and blocked = 0;
create index job_lease on job (lease_until) where lease_id is not null;
create index job_key on job (queue_id, ordering_key, position) where ordering_key is not null;

create table dead_job (
    id integer primary key,
    queue_id integer not null,
    priority integer not null,
    available_at integer not null,
    position integer,
    ordering_key text,
    attempt integer not null,
    max_attempts integer not null,
    lease_number integer not null,
    enqueued_at integer not null,
    dead_at integer not null,
    -- When it is removed: the queue's retention, counted from dead_at.
    expires_at integer not null,
    idempotency_key text,
    content_type text not null,
    headers text,
    traceparent text,
    tracestate text,
    last_error text,
    payload blob not null
) strict;

create index dead_job_expires on dead_job (expires_at);

create table idempotency_key (
    queue_id integer not null,
    key text not null,
    job_id integer not null,
    -- SHA-256 of what two calls with the key must agree on.
    content blob not null,
    -- How often it came again: written at each duplicate, so that its answer is as durable as the first one.
    hits integer not null default 0,
    expires_at integer not null,
    primary key (queue_id, key)
) strict;

create index idempotency_key_expires on idempotency_key (expires_at);
