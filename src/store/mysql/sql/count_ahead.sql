-- ? queue, ? tier, ? last ready_at and again ? and ? job to come before, ? how many
select count(*) as jobs
from (
    select 1 as one
    from leasehold_ready r force index (primary)
    where r.queue_id = ? and r.tier = ? and r.ready_at <= ? and (r.ready_at < ? or r.id < ?)
    limit ?
) first
