-- The tables. Forward only, as everywhere. The server commits each statement of this kind by itself, so each can run again
-- where a migration was cut off in the middle; a line "-- next" ends it.
--
-- What a job is stands in leasehold_job, whose turn it is in leasehold_ready and leasehold_blocked, who holds it in
-- leasehold_lease. A claim takes from leasehold_ready, whose primary key is the claim's order, and puts into
-- leasehold_lease: one locked row each, no index beside, and never a job. All others lock the job first.
--
-- Times and durations are whole microseconds, times since 1970 in UTC; the views at the end show them to people. Keys are
-- byte strings, since the server's other types take 'k', 'K' and 'k ' for one.
--
-- Columns that other engines got by later migrations stand here: this one came with them, and no server of the family adds a
-- column in a way that can run again.

create table if not exists leasehold_schema_migration (
    number int not null primary key,
    name varchar(100) character set ascii collate ascii_bin not null,
    applied_at bigint not null
) engine = InnoDB row_format = dynamic;

-- next
-- The defaults are those of queues that nobody configured, such as one that came into being by leasehold_enqueue.
create table if not exists leasehold_queue (
    id int not null auto_increment primary key,
    name varbinary(128) not null,
    lease_duration bigint not null default 30000000,
    max_attempts int not null default 20,
    backoff_base bigint not null default 1000000,
    backoff_cap bigint not null default 600000000,
    idempotency_retention bigint not null default 86400000000,
    dead_retention bigint not null default 1209600000000,
    max_backlog_jobs bigint,
    max_backlog_bytes bigint,
    -- Rises with each change, so that of two changes at once none is lost.
    version bigint not null default 0,
    -- No job is leased.
    paused boolean not null default false,
    -- No job is taken in, for this reason.
    disabled_reason mediumtext character set utf8mb4 collate utf8mb4_bin,
    -- It is being deleted: as if paused and disabled.
    closing_since bigint,
    -- How long a job stays ready before it is dead.
    time_to_live bigint,
    -- How long acked jobs are kept; not at all where null.
    acked_retention bigint,
    key queue_time_to_live (time_to_live, id),
    unique key queue_name (name)
) engine = InnoDB row_format = dynamic;

-- next
create table if not exists leasehold_job (
    id bigint not null auto_increment primary key,
    -- 0 for the moment between leasehold_enqueue and its adoption where the queue did not exist yet.
    queue_id int not null,
    priority tinyint not null,
    max_attempts int not null,
    cancel_requested boolean not null default false,
    -- Its place in its ordering key, where that is not its id.
    position bigint,
    enqueued_at bigint not null,
    -- When it was first due.
    available_at bigint not null,
    -- Where it stands in leasehold_ready, or stood last.
    ready_at bigint not null,
    payload_bytes int not null,
    ordering_key varbinary(200),
    idempotency_key varbinary(200),
    -- The business process that enqueued it; null where nobody said, such as in a service's transaction.
    caller varchar(64) character set ascii collate ascii_bin,
    content_type varchar(200) character set utf8mb4 collate utf8mb4_bin not null,
    traceparent varchar(512) character set utf8mb4 collate utf8mb4_bin,
    tracestate varchar(512) character set utf8mb4 collate utf8mb4_bin,
    -- A JSON object of texts; null where there are none.
    headers mediumtext character set utf8mb4 collate utf8mb4_bin,
    last_error mediumtext character set utf8mb4 collate utf8mb4_bin,
    payload mediumblob not null
) engine = InnoDB row_format = dynamic;

-- next
create table if not exists leasehold_ready (
    queue_id int not null,
    -- 9 less the priority: descending keys are younger than the oldest server that this runs on.
    tier tinyint not null,
    -- When it became ready or will: the claim's order within a priority.
    ready_at bigint not null,
    id bigint not null,
    attempt int not null,
    lease_number bigint not null,
    primary key (queue_id, tier, ready_at, id)
) engine = InnoDB row_format = dynamic;

-- next
-- Waits for an earlier job of its key, or for its adoption: see leasehold_arrival.
create table if not exists leasehold_blocked (
    queue_id int not null,
    ordering_key varbinary(200) not null,
    position bigint not null,
    id bigint not null,
    attempt int not null,
    lease_number bigint not null,
    primary key (queue_id, ordering_key, position)
) engine = InnoDB row_format = dynamic;

-- next
create table if not exists leasehold_lease (
    job_id bigint not null primary key,
    token binary(16) not null,
    lease_until bigint not null,
    -- What the lease was granted for.
    duration bigint not null,
    queue_id int not null,
    attempt int not null,
    lease_number bigint not null,
    -- The stream that it was claimed for: the replica's number, then the stream's, 32 bits each.
    stream bigint,
    key lease_until (lease_until),
    key lease_queue (queue_id, lease_until)
) engine = InnoDB row_format = dynamic;

-- next
create table if not exists leasehold_dead_job (
    id bigint not null primary key,
    queue_id int not null,
    priority tinyint not null,
    attempt int not null,
    max_attempts int not null,
    lease_number bigint not null,
    position bigint,
    enqueued_at bigint not null,
    available_at bigint not null,
    dead_at bigint not null,
    -- When it is removed: the queue's retention, counted from dead_at.
    expires_at bigint not null,
    payload_bytes int not null,
    ordering_key varbinary(200),
    idempotency_key varbinary(200),
    caller varchar(64) character set ascii collate ascii_bin,
    content_type varchar(200) character set utf8mb4 collate utf8mb4_bin not null,
    traceparent varchar(512) character set utf8mb4 collate utf8mb4_bin,
    tracestate varchar(512) character set utf8mb4 collate utf8mb4_bin,
    headers mediumtext character set utf8mb4 collate utf8mb4_bin,
    last_error mediumtext character set utf8mb4 collate utf8mb4_bin,
    payload mediumblob not null,
    key dead_job_expires (expires_at),
    key dead_job_queue (queue_id, dead_at, id)
) engine = InnoDB row_format = dynamic;

-- next
create table if not exists leasehold_idempotency_key (
    queue_id int not null,
    name varbinary(200) not null,
    -- 0 within the transaction that brings it into being.
    job_id bigint not null,
    -- SHA-256 of what two calls with the key must agree on.
    content binary(32) not null,
    -- How often it came again: written at each duplicate, so that its answer is as durable as the first one.
    hits bigint not null,
    expires_at bigint not null,
    primary key (queue_id, name),
    key idempotency_key_expires (expires_at)
) engine = InnoDB row_format = dynamic;

-- next
-- One row per ordering key that has jobs. Whoever changes what a key's jobs may do locks its row first.
create table if not exists leasehold_ordering_key (
    queue_id int not null,
    ordering_key varbinary(200) not null,
    -- The job that is not blocked; 0 while nobody has decided.
    head bigint not null,
    primary key (queue_id, ordering_key)
) engine = InnoDB row_format = dynamic;

-- next
-- What services left in transactions of their own: a job to be adopted, or a key whose head is gone. Append-only for them.
create table if not exists leasehold_arrival (
    id bigint not null auto_increment primary key,
    stored_at bigint not null,
    job_id bigint,
    queue_id int not null,
    ordering_key varbinary(200),
    -- Named where the queue did not exist.
    queue_name varbinary(128),
    key arrival_named (queue_name, ordering_key)
) engine = InnoDB row_format = dynamic;

-- next
-- Live jobs for people: times in UTC, whatever the session's time zone.
create or replace sql security invoker view leasehold_jobs as
select j.id, cast(q.name as char(128) character set utf8mb4) as queue, j.priority,
    case
        when l.job_id is not null then 'leased'
        when b.id is not null or r.id is null then 'blocked'
        when r.ready_at > timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6)) then 'scheduled'
        else 'ready'
    end as state,
    coalesce(l.attempt, r.attempt, b.attempt, 0) as attempt, j.max_attempts,
    cast(j.ordering_key as char(200) character set utf8mb4) as ordering_key,
    cast(j.idempotency_key as char(200) character set utf8mb4) as idempotency_key,
    timestampadd(microsecond, j.enqueued_at, timestamp '1970-01-01 00:00:00') as enqueued_at_utc,
    timestampadd(microsecond, j.available_at, timestamp '1970-01-01 00:00:00') as available_at_utc,
    timestampadd(microsecond, r.ready_at, timestamp '1970-01-01 00:00:00') as ready_at_utc,
    timestampadd(microsecond, l.lease_until, timestamp '1970-01-01 00:00:00') as lease_until_utc,
    j.caller, j.content_type, j.payload_bytes, j.last_error
from leasehold_job j
left join leasehold_queue q on q.id = j.queue_id
left join leasehold_lease l on l.job_id = j.id
left join leasehold_ready r
    on r.queue_id = j.queue_id and r.tier = 9 - j.priority and r.ready_at = j.ready_at and r.id = j.id
left join leasehold_blocked b
    on b.queue_id = j.queue_id and b.ordering_key = j.ordering_key and b.position = coalesce(j.position, j.id);

-- next
-- Dead jobs for people.
create or replace sql security invoker view leasehold_dead_jobs as
select d.id, cast(q.name as char(128) character set utf8mb4) as queue, d.priority, d.attempt, d.max_attempts,
    cast(d.ordering_key as char(200) character set utf8mb4) as ordering_key,
    cast(d.idempotency_key as char(200) character set utf8mb4) as idempotency_key,
    timestampadd(microsecond, d.enqueued_at, timestamp '1970-01-01 00:00:00') as enqueued_at_utc,
    timestampadd(microsecond, d.dead_at, timestamp '1970-01-01 00:00:00') as dead_at_utc,
    timestampadd(microsecond, d.expires_at, timestamp '1970-01-01 00:00:00') as expires_at_utc,
    d.caller, d.content_type, d.payload_bytes, d.last_error
from leasehold_dead_job d
left join leasehold_queue q on q.id = d.queue_id;
