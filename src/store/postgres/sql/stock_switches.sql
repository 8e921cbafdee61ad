-- Switches of stock by prefix, $1 at most.
select s.prefix, s.reason, s.set_at from leasehold.stock_switch s where s.prefix >= '' order by s.prefix limit $1::bigint
