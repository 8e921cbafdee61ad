-- Takes the switch of prefix $1 away.
delete from leasehold.stock_switch s where s.prefix = $1::text returning s.prefix
