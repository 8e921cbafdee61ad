-- Ends reservations past their time that expire after $1, $2 at most. See leasehold.sweep_reservations.
select s.lags, s.stored, s.next_floor from leasehold.sweep_reservations($1::timestamptz, $2::int) s
