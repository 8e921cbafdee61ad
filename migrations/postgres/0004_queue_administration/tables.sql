-- Queues as operators steer them: switches, two more retentions, counting, purging, deletion. The files in this directory are
-- one migration, in the order tables, acks, counting, purging, expiry, sql_api. The version before it runs on: new columns have
-- defaults, and the functions that it calls keep their signatures and meaning.

alter table leasehold.queue
    -- Rises with each change, so that of two changes at once none is lost.
    add column version bigint not null default 0,
    -- No job is leased.
    add column paused boolean not null default false,
    -- No job is taken in, for this reason.
    add column disabled_reason text,
    -- It is being deleted: as if paused and disabled. The transaction in which that began: whoever did not see it is over
    -- once no transaction from before it is left.
    add column closing_since timestamptz,
    add column closing_xact bigint,
    -- How long a job stays ready before it is dead.
    add column time_to_live bigint,
    -- How long acked jobs are kept; not at all where null.
    add column acked_retention bigint;

-- The business process that enqueued a job; null where nobody said, such as in a service's transaction.
alter table leasehold.job add column caller text collate "C";
alter table leasehold.dead_job add column caller text collate "C";

-- Few queues have these, so that to look for them costs nothing where none has.
create index queue_time_to_live on leasehold.queue (id) where time_to_live is not null;
create index queue_acked_retention on leasehold.queue (id) where acked_retention is not null;

-- Its condition is spelled so that no statement takes it up that did not mean to: the walks over all leases go by job_lease, also
-- where plans are made on empty tables.
create index job_leased on leasehold.job (queue_id, lease_until) where (lease_id is null)::int = 0;
create index dead_job_queue on leasehold.dead_job (queue_id, dead_at, id);

-- Jobs that are done, of queues that keep them for a while.
create table leasehold.acked_job (
    id bigint primary key,
    position bigint,
    lease_number bigint not null,
    enqueued_at timestamptz not null,
    available_at timestamptz not null,
    acked_at timestamptz not null,
    expires_at timestamptz not null,
    queue_id int not null,
    attempt int not null,
    max_attempts int not null,
    priority smallint not null,
    ordering_key text collate "C",
    idempotency_key text collate "C",
    caller text collate "C",
    content_type text not null,
    traceparent text,
    tracestate text,
    headers text,
    last_error text,
    payload bytea not null
) with (
    autovacuum_vacuum_scale_factor = 0.05,
    autovacuum_vacuum_insert_scale_factor = 0.1,
    autovacuum_vacuum_cost_delay = 0,
    vacuum_index_cleanup = on,
    vacuum_truncate = off
);
create index acked_job_expires on leasehold.acked_job (expires_at);
create index acked_job_queue on leasehold.acked_job (queue_id, id);

