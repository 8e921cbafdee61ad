-- What answers, as whom and when.
select current_setting('server_version_num')::int as number,
    current_setting('server_version') as version,
    pg_is_in_recovery() as in_recovery,
    current_setting('transaction_read_only') = 'on' as read_only,
    current_database()::text as database,
    pg_backend_pid() as backend,
    coalesce(current_setting('leasehold_broker.session', true), '') = 'direct' as direct,
    clock_timestamp() as now
