-- For a migration's transaction: its statements take as long as they take, but a wait for a lock ends after half of the session's
-- time. Who comes after it waits behind it, and must not be given up first.
select set_config('statement_timeout', '0', true),
    set_config('lock_timeout', (extract(epoch from current_setting('lock_timeout')::interval) * 500)::int::text, true)
