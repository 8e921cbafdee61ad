-- Holds lines $7 (items), $8 (locations) and $9 (quantities) for $4 microseconds under reference $2, whose content is $3, for
-- $5; with the stocks' rows locked where $1. $6: units of a full pool. $10 to $23: jobs stored with it, in the columns of
-- enqueue_keyed.sql. $24 to $33: jobs kept for its expiry. See leasehold.reserve.
select r.outcome, r.low, r.free, r.job_ids as ids, r.ready_ats, r.duplicates, r.stored_at, r.id, r.reference, r.state,
    r.created_at, r.expires_at, r.ended_at, r.jobs, r.commit_jobs, r.items, r.locations, r.quantities
from leasehold.reserve(
    $1::boolean, $2::text, $3::bytea, $4::bigint, $5::text, $6::int, $7::text[], $8::text[], $9::int[], $10::int[],
    $11::bytea[], $12::text[], $13::text[], $14::smallint[], $15::bigint[], $16::timestamptz[], $17::int[],
    $18::text[], $19::text[], $20::bytea[], $21::bigint[], $22::text[], $23::text[], $24::int[], $25::bytea[],
    $26::text[], $27::text[], $28::smallint[], $29::bigint[], $30::int[], $31::text[], $32::text[], $33::text[]
) r
