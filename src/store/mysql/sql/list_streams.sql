-- ? replicas not seen for so long are as if they were not, ? stream to come behind, ? how many
-- Lease streams in the order of their numbers; no replica where it is gone.
select s.id as stream, p.name as replica, s.consumer, s.peer, s.caller as stream_caller, s.queues, s.max_in_flight, s.in_flight,
    timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6)) - s.oldest_lease_at as oldest_age,
    s.opened_at, p.seen_at
from leasehold_replica_stream s force index (primary)
left join leasehold_replica p force index (primary)
    on p.id = s.replica and p.seen_at > timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6)) - ?
where s.id > ?
order by s.id
limit ?
