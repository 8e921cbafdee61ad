-- ? [stream, …]
delete s
from json_table(?, '$[*]' columns (id bigint path '$')) v
straight_join leasehold_replica_stream s force index (primary) on s.id = v.id
