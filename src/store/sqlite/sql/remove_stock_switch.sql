-- ?1 prefix
delete from stock_switch where prefix = ?1
