-- ? stream, ? replicas not seen for so long are as if they were not
select s.id as stream, p.name as replica, s.consumer, s.peer, s.caller as stream_caller, s.queues, s.max_in_flight, s.in_flight,
    timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6)) - s.oldest_lease_at as oldest_age,
    s.opened_at, p.seen_at
from leasehold_replica_stream s force index (primary)
straight_join leasehold_replica p force index (primary) on p.id = s.replica
where s.id = ? and p.seen_at > timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6)) - ?
