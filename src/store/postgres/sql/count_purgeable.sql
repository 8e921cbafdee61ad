-- Jobs of queue $1: ready ($2), scheduled ($3), blocked behind a key ($4), dead ($5) and acked ($6) ones, enqueued before $7
-- where that is given, $8 rows of each state at most. See leasehold.count_purgeable.
select c.walked, c.found
from leasehold.count_purgeable(
    $1::int, $2::boolean, $3::boolean, $4::boolean, $5::boolean, $6::boolean, $7::timestamptz, $8::bigint
) c
