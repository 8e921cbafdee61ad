-- What the promises stand on. Servers differ in what they have; what is not there is left out.
show session variables where variable_name in (
    'version', 'version_comment', 'innodb_flush_log_at_trx_commit', 'log_bin', 'sync_binlog', 'binlog_format',
    'read_only', 'super_read_only', 'innodb_read_only', 'max_allowed_packet', 'auto_increment_increment', 'tx_isolation',
    'transaction_isolation', 'time_zone', 'collation_connection', 'autocommit'
)
