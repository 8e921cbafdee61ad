-- Who holds a job's lease, and which replicas are there. The files in this directory are one migration, in
-- the order tables, enqueue, leases, steering, presence. The version before it runs on: new columns may be null, and the
-- functions that it calls keep their signatures.

alter table leasehold.job
    -- The stream that its lease was claimed for: the replica's number, then the stream's, 32 bits each. Null without a lease.
    add column lease_stream bigint;

-- Requests to cancel leased jobs, for the replica whose stream holds the lease; it takes them out as it reads them.
create table leasehold.cancellation (
    lease_stream bigint not null,
    job_id bigint not null,
    primary key (lease_stream, job_id)
) with (
    autovacuum_vacuum_scale_factor = 0.05,
    autovacuum_vacuum_cost_delay = 0,
    vacuum_truncate = off
);

-- Replicas, each written by itself every few seconds.
create table leasehold.replica (
    -- Drawn at the replica's start.
    id bigint primary key,
    started_at timestamptz not null,
    seen_at timestamptz not null,
    name text not null,
    version text not null
) with (
    fillfactor = 50,
    autovacuum_vacuum_threshold = 200,
    autovacuum_vacuum_scale_factor = 0.05,
    autovacuum_vacuum_cost_delay = 0,
    vacuum_truncate = off
);

-- Lease streams of each replica. Written where something changed.
create table leasehold.replica_stream (
    -- The replica's number, then the stream's, as in job.lease_stream.
    id bigint primary key,
    replica bigint not null,
    opened_at timestamptz not null,
    oldest_lease_at timestamptz,
    max_in_flight int not null,
    in_flight int not null,
    consumer text not null,
    peer text not null,
    caller text not null,
    -- Names with a blank before and after each.
    queues text collate "C" not null
) with (
    fillfactor = 70,
    autovacuum_vacuum_threshold = 500,
    autovacuum_vacuum_scale_factor = 0.05,
    autovacuum_vacuum_cost_delay = 0,
    vacuum_truncate = off
);

-- What the streams of each replica ask for, by queue, whether it exists or not. Written where something changed.
create table leasehold.replica_demand (
    replica bigint not null,
    streams bigint not null,
    free_credit bigint not null,
    queue_name text collate "C" not null,
    primary key (replica, queue_name)
) with (
    fillfactor = 70,
    autovacuum_vacuum_threshold = 500,
    autovacuum_vacuum_scale_factor = 0.05,
    autovacuum_vacuum_cost_delay = 0,
    vacuum_truncate = off
);

-- What became of each queue's jobs on each replica over the last minute, per second. Written where something changed.
create table leasehold.replica_rate (
    replica bigint not null,
    queue_id int not null,
    enqueued float8 not null,
    leased float8 not null,
    acked float8 not null,
    retried float8 not null,
    expired float8 not null,
    dead float8 not null,
    primary key (replica, queue_id)
) with (
    fillfactor = 70,
    autovacuum_vacuum_threshold = 500,
    autovacuum_vacuum_scale_factor = 0.05,
    autovacuum_vacuum_cost_delay = 0,
    vacuum_truncate = off
);
