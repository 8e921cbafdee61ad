-- Queues as operators steer them: switches, two more retentions, counting, purging, deletion.

-- Rises with each change, so that of two changes at once none is lost.
alter table queue add column version integer not null default 0;
-- No job is leased.
alter table queue add column paused integer not null default 0;
-- No job is taken in, for this reason.
alter table queue add column disabled_reason text;
-- It is being deleted: as if paused and disabled.
alter table queue add column closing_since integer;
-- How long a job stays ready before it is dead.
alter table queue add column time_to_live integer;
-- How long acked jobs are kept; not at all where null.
alter table queue add column acked_retention integer;

-- The business process that enqueued a job; null where nobody said.
alter table job add column caller text;
alter table dead_job add column caller text;

-- Few queues have these, so that to look for them costs nothing where none has.
create index queue_time_to_live on queue (id) where time_to_live is not null;
create index queue_acked_retention on queue (id) where acked_retention is not null;

create index job_blocked on job (queue_id, ordering_key, position) where blocked = 1;
create index job_leased on job (queue_id, lease_until) where lease_id is not null;
create index dead_job_queue on dead_job (queue_id, dead_at, id);

-- Jobs that are done, of queues that keep them for a while.
create table acked_job (
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
    acked_at integer not null,
    -- When it is removed: the queue's retention, counted from acked_at.
    expires_at integer not null,
    idempotency_key text,
    caller text,
    content_type text not null,
    headers text,
    traceparent text,
    tracestate text,
    last_error text,
    payload blob not null
) strict;

create index acked_job_expires on acked_job (expires_at);
create index acked_job_queue on acked_job (queue_id, id);
