-- ?1 limit
select prefix, reason, set_at from stock_switch order by prefix limit ?1
