-- Transactions whose old row versions wait to be removed.
select cast(m.count as signed) as transactions
from information_schema.innodb_metrics m
where m.name = 'trx_rseg_history_len'
