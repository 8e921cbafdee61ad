-- Makes dead jobs of queue $1 live again, behind the one that died at $2 with id $3, up to those that died at $4; $5 rows are
-- looked at, $6 redriven; that died after $7 and before $8, whose error contains $9, of ordering key $10 and caller $11. See
-- leasehold.redrive_queue.
select r.jobs, r.readied, r.redriven_until, r.next_at, r.next_id
from leasehold.redrive_queue(
    $1::int, $2::timestamptz, $3::bigint, $4::timestamptz, $5::int, $6::int, $7::timestamptz, $8::timestamptz, $9::text,
    $10::text, $11::text
) r
