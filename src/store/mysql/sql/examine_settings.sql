-- Settings that something depends on, as they hold for the broker's sessions. What a server does not have is left out.
show session variables where variable_name in (
    'version', 'version_comment', 'innodb_flush_log_at_trx_commit', 'log_bin', 'sync_binlog', 'binlog_format',
    'read_only', 'super_read_only', 'innodb_read_only', 'innodb_doublewrite', 'max_allowed_packet', 'tx_isolation',
    'transaction_isolation', 'time_zone', 'collation_connection', 'autocommit', 'innodb_thread_concurrency',
    'max_connections', 'max_user_connections', 'max_prepared_stmt_count', 'rpl_semi_sync_master_enabled',
    'rpl_semi_sync_source_enabled', 'rpl_semi_sync_master_wait_point', 'rpl_semi_sync_source_wait_point'
)
