-- Waits until nobody else migrates; the lock goes with the transaction. The number is arbitrary and ours for ever.
select pg_advisory_xact_lock(5500148632171246573)
