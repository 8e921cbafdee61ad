-- ? [[stream, job, replica], …]
-- For the replica that has the streams, where it is there.
insert into leasehold_cancellation (lease_stream, job_id)
select v.stream, v.id
from json_table(?, '$[*]' columns (stream bigint path '$[0]', id bigint path '$[1]', replica bigint path '$[2]')) v
straight_join leasehold_replica p force index (primary) on p.id = v.replica
on duplicate key update job_id = leasehold_cancellation.job_id
