-- ?1 [job, …]
-- Those jobs that live or are dead, by their place in the list.
select ref.key as n
from json_each(?1) ref
where exists (select 1 from job where id = ref.value) or exists (select 1 from dead_job where id = ref.value)
