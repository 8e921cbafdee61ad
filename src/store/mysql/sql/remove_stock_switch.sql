-- ? prefix
delete from leasehold_stock_switch where prefix = ?
