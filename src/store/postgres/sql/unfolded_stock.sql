-- Stocks behind item $1 at location $2 that have something to fold, $3 at most. See leasehold.unfolded_stock.
select u.items, u.locations from leasehold.unfolded_stock($1::text, $2::text, $3::int) u
