-- ? [[stream, job], …], all of them locked by this transaction
delete c
from json_table(?, '$[*]' columns (stream bigint path '$[0]', id bigint path '$[1]')) v
straight_join leasehold_cancellation c force index (primary) on c.lease_stream = v.stream and c.job_id = v.id
