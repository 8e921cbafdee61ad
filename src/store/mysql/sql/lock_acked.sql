-- ? [job, …]
-- Those of them that nobody holds, locked.
select a.id
from json_table(?, '$[*]' columns (id bigint path '$')) v
straight_join leasehold_acked_job a force index (primary) on a.id = v.id
for update /*!80001 of a */ skip locked
