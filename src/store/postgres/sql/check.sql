-- What the promises stand on, and the address of this connection's end as the database sees it.
select current_setting('server_version_num')::int as version,
    pg_is_in_recovery() as in_recovery,
    current_setting('transaction_read_only') = 'on' as read_only,
    current_setting('fsync') = 'on' as fsync,
    current_setting('full_page_writes') = 'on' as full_page_writes,
    current_setting('synchronous_commit') <> 'off' as synchronous_commit,
    current_setting('lc_messages') as lc_messages,
    current_setting('plan_cache_mode') = 'force_generic_plan' and current_setting('enable_seqscan') = 'off'
        and current_setting('enable_hashjoin') = 'off' and current_setting('enable_mergejoin') = 'off' as settings_taken,
    host(inet_client_addr()) as client_host,
    inet_client_port() as client_port,
    coalesce(current_setting('leasehold_broker.session', true), '') = 'direct' as direct,
    exists (select from pg_prepared_statements p where p.name like 'sqlx\_s\_%') as names_kept
