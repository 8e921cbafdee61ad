-- Adopts what services left from transaction $1 on, $2 rows at most. See leasehold.adopt_arrivals.
select a.adopted, a.readied, a.next_floor from leasehold.adopt_arrivals($1::bigint, $2::int) a
