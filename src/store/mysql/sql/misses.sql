-- ? [[place, job], …]
-- What there is of each job: itself, its lease, its grave.
select v.n, j.id as live, l.token, d.id as dead
from json_table(?, '$[*]' columns (n int path '$[0]', id bigint path '$[1]')) v
left join leasehold_job j force index (primary) on j.id = v.id
left join leasehold_lease l force index (primary) on l.job_id = v.id
left join leasehold_dead_job d force index (primary) on d.id = v.id
