-- Ends reservation $1 as state $2 (2 committed, 3 released) for $3. $4 to $17: jobs stored with it, in the columns of
-- enqueue_keyed.sql. See leasehold.end_reservation.
select r.outcome, r.job_ids as ids, r.ready_ats, r.duplicates, r.stored_at, r.id, r.reference, r.state, r.created_at,
    r.expires_at, r.ended_at, r.jobs, r.commit_jobs, r.items, r.locations, r.quantities
from leasehold.end_reservation(
    $1::bigint, $2::smallint, $3::text, $4::int[], $5::bytea[], $6::text[], $7::text[], $8::smallint[], $9::bigint[],
    $10::timestamptz[], $11::int[], $12::text[], $13::text[], $14::bytea[], $15::bigint[], $16::text[], $17::text[]
) r
