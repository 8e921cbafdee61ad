-- ? [job, …]
-- Those of them that nobody holds, locked.
select d.id
from json_table(?, '$[*]' columns (id bigint path '$')) v
straight_join leasehold_dead_job d force index (primary) on d.id = v.id
for update /*!80001 of d */ skip locked
