-- Stores jobs of which some have keys, all or none; see leasehold.enqueue_keyed_by. $16: each queue once;
-- where one of them takes no jobs, nothing is done and there is no answer. $17: who enqueues them.
select e.ids, e.ready_ats, e.duplicates, e.stored_at
from leasehold.enqueue_keyed_by(
    $1::int[], $2::bytea[], $3::text[], $4::text[], $5::smallint[], $6::bigint[], $7::timestamptz[], $8::int[], $9::text[],
    $10::text[], $11::bytea[], $12::bigint[], $13::text[], $14::text[], $15::boolean, $17::text
) e
where (
    select count(q.id)
    from leasehold.queue q
    where q.id = any ($16::int[]) and q.disabled_reason is null and q.closing_since is null
) = cardinality($16::int[])
