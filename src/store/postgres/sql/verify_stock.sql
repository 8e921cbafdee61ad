-- Compares the books of stocks behind item $2 at location $3, $4 at most; of item $1 alone where it is named. See
-- leasehold.verify_stock.
select v.items, v.locations, v.entered_on_hand, v.entered_held, v.on_hands, v.helds, v.lines, v.frees
from leasehold.verify_stock($1::text, $2::text, $3::text, $4::int) v
