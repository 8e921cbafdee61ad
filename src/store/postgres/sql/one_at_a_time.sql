-- Waits until nobody else migrates the schema whose number is $1; the lock goes with the transaction.
select pg_advisory_xact_lock($1::bigint)
