-- Who holds leases and which replicas are there.

-- Requests to cancel leased jobs, for the replica whose stream holds the lease; it takes them out as it reads them.
create table if not exists leasehold_cancellation (
    lease_stream bigint not null,
    job_id bigint not null,
    primary key (lease_stream, job_id)
) engine = InnoDB row_format = dynamic;

-- next
-- Replicas, each written by itself every few seconds.
create table if not exists leasehold_replica (
    -- Drawn at the replica's start.
    id bigint not null primary key,
    started_at bigint not null,
    seen_at bigint not null,
    name varchar(200) character set utf8mb4 collate utf8mb4_bin not null,
    version varchar(200) character set utf8mb4 collate utf8mb4_bin not null
) engine = InnoDB row_format = dynamic;

-- next
-- Lease streams of each replica. Written where something changed.
create table if not exists leasehold_replica_stream (
    -- The replica's number, then the stream's, as in leasehold_lease.
    id bigint not null primary key,
    replica bigint not null,
    opened_at bigint not null,
    oldest_lease_at bigint,
    max_in_flight int unsigned not null,
    in_flight int unsigned not null,
    consumer text character set utf8mb4 collate utf8mb4_bin not null,
    peer text character set utf8mb4 collate utf8mb4_bin not null,
    caller varchar(64) character set ascii collate ascii_bin not null,
    -- Names with a blank before and after each.
    queues mediumtext character set utf8mb4 collate utf8mb4_bin not null
) engine = InnoDB row_format = dynamic;

-- next
-- What the streams of each replica ask for, by queue, whether it exists or not. Written where something changed.
create table if not exists leasehold_replica_demand (
    replica bigint not null,
    queue_name varbinary(128) not null,
    streams bigint not null,
    free_credit bigint not null,
    primary key (replica, queue_name)
) engine = InnoDB row_format = dynamic;

-- next
-- What became of each queue's jobs on each replica over the last minute, per second. Written where something changed.
create table if not exists leasehold_replica_rate (
    replica bigint not null,
    queue_id int not null,
    enqueued double not null,
    leased double not null,
    acked double not null,
    retried double not null,
    expired double not null,
    dead double not null,
    primary key (replica, queue_id)
) engine = InnoDB row_format = dynamic;
