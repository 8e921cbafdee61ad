-- Jobs that are done, of queues that keep them for a while.
create table if not exists leasehold_acked_job (
    id bigint not null primary key,
    queue_id int not null,
    priority tinyint not null,
    attempt int not null,
    max_attempts int not null,
    lease_number bigint not null,
    position bigint,
    enqueued_at bigint not null,
    available_at bigint not null,
    acked_at bigint not null,
    -- When it is removed: the queue's retention, counted from acked_at.
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
    key acked_job_expires (expires_at),
    key acked_job_queue (queue_id, id)
) engine = InnoDB row_format = dynamic;
