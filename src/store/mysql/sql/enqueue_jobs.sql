-- One row for each job, as named. The last line is repeated.
insert into leasehold_job (
    queue_id, priority, max_attempts, enqueued_at, available_at, ready_at, payload_bytes, ordering_key, idempotency_key,
    caller, content_type, traceparent, tracestate, headers, payload
)
values
(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
