-- Adjusts stocks $6 (items), $7 (locations) by $8 units under reference $1, whose content is $2, with reason $3, for $4.
-- $5: units of a full pool. $9: units on hand at most. See leasehold.adjust_stock.
select a.outcome, a.free, a.place, a.on_hands, a.helds
from leasehold.adjust_stock(
    $1::text, $2::bytea, $3::text, $4::text, $5::int, $6::text[], $7::text[], $8::bigint[], $9::bigint
) a
