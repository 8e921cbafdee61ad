-- One row for each job, as named. The last line is repeated.
insert into leasehold_reservation_job (
    reservation_id, place, queue_id, delay, priority, max_attempts, ordering_key, caller, content_type, traceparent,
    tracestate, headers, payload
)
values
(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
