-- Who holds a job's lease, and which replicas are there: here always one.

-- The stream that its lease was claimed for: the replica's number, then the stream's, 32 bits each. Null without a lease.
alter table job add column lease_stream integer;

-- Requests to cancel leased jobs, for the replica whose stream holds the lease; it takes them out as it reads them.
create table cancellation (
    lease_stream integer not null,
    job_id integer not null,
    primary key (lease_stream, job_id)
) strict, without rowid;

create table replica (
    id integer primary key,
    name text not null,
    version text not null,
    started_at integer not null,
    seen_at integer not null
) strict;

-- Lease streams. Written where something changed.
create table replica_stream (
    -- The replica's number, then the stream's, as in job.lease_stream.
    id integer primary key,
    replica integer not null,
    consumer text not null,
    peer text not null,
    caller text not null,
    -- Names with a blank before and after each.
    queues text not null,
    max_in_flight integer not null,
    in_flight integer not null,
    oldest_lease_at integer,
    opened_at integer not null
) strict;

-- What its streams ask for, by queue, whether it exists or not. Written where something changed.
create table replica_demand (
    replica integer not null,
    queue_name text not null,
    streams integer not null,
    free_credit integer not null,
    primary key (replica, queue_name)
) strict, without rowid;

-- What became of each queue's jobs over the last minute, per second. Written where something changed.
create table replica_rate (
    replica integer not null,
    queue_id integer not null,
    enqueued real not null,
    leased real not null,
    acked real not null,
    retried real not null,
    expired real not null,
    dead real not null,
    primary key (replica, queue_id)
) strict, without rowid;
