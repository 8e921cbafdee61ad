-- Folds stocks $1 (items), $2 (locations) and fills their pools up to $3 units. See leasehold.refill_stock.
select r.places, r.folds, r.adds, r.depths from leasehold.refill_stock($1::text[], $2::text[], $3::int) r
