-- Roles for Leasehold on PostgreSQL, by least privilege. Run once by a role that may create roles, after `leasehold migrate
-- up`, and again after each upgrade that brought migrations; running it again changes nothing. No migration does this, since
-- managed databases often forbid CREATE ROLE: adapt the names, or grant the same rights to roles that you have.
--
--   leasehold_migrator   owns the schema; `leasehold migrate up` runs as it
--   leasehold_broker     what `leasehold serve` connects as: reads and writes jobs, changes no table's shape
--   leasehold_producer   services that call leasehold.enqueue in their own transactions
--   leasehold_worker     services that call leasehold.ack and leasehold.ack_or_fail in their own transactions
--
-- For a broker whose database_schema is not leasehold, write its name for the word leasehold wherever it stands alone:
--   sed 's/\bleasehold\b/jobs/g' roles.sql
--
-- None of them can log in: grant them to login roles, e.g.
--   create role shop login password '…'; grant leasehold_producer, leasehold_worker to shop;

do $$
declare
    name text;
begin
    foreach name in array array['leasehold_migrator', 'leasehold_broker', 'leasehold_producer', 'leasehold_worker'] loop
        if not exists (select from pg_catalog.pg_roles r where r.rolname = name) then
            execute pg_catalog.format('create role %I nologin', name);
        end if;
    end loop;
end
$$;

-- The migrator owns what the migrations made, whoever ran them first, and may make more.
do $$
declare
    thing record;
begin
    execute pg_catalog.format('grant create on database %I to leasehold_migrator', pg_catalog.current_database());
    alter schema leasehold owner to leasehold_migrator;
    for thing in
        select c.oid::pg_catalog.regclass::text as name from pg_catalog.pg_class c
        where c.relnamespace = 'leasehold'::pg_catalog.regnamespace and c.relkind = 'r'
    loop
        execute 'alter table ' || thing.name || ' owner to leasehold_migrator';
    end loop;
    for thing in
        select p.oid::pg_catalog.regprocedure::text as name from pg_catalog.pg_proc p
        where p.pronamespace = 'leasehold'::pg_catalog.regnamespace
    loop
        execute 'alter function ' || thing.name || ' owner to leasehold_migrator';
    end loop;
end
$$;

grant usage on schema leasehold to leasehold_broker, leasehold_producer, leasehold_worker;

-- The broker looks at the list of migrations and leaves it alone.
grant select, insert, update, delete on all tables in schema leasehold to leasehold_broker;
revoke insert, update, delete on leasehold.schema_migration from leasehold_broker;
-- The ledger of stock is added to and never changed.
revoke update, delete on leasehold.stock_ledger from leasehold_broker;
grant usage on all sequences in schema leasehold to leasehold_broker;
grant execute on all functions in schema leasehold to leasehold_broker;

-- Its sessions ask for these by themselves. Behind a pooler that drops what sessions ask for at their start, set them for
-- the role that the broker logs in as (settings are not inherited from a granted role):
--   alter role broker_login set plan_cache_mode = force_generic_plan;
--   alter role broker_login set enable_seqscan = off;
--   alter role broker_login set enable_hashjoin = off;
--   alter role broker_login set enable_mergejoin = off;
--   alter role broker_login set statement_timeout = '10s';
--   alter role broker_login set lock_timeout = '2s';
--   alter role broker_login set idle_in_transaction_session_timeout = '15s';
-- Where that pooler keeps sessions (session mode), and only there, say so:
--   alter role broker_login set leasehold_broker.session = 'direct';

-- To see what other roles' sessions do (docs/operations.md), the broker needs this; without it their connections are counted
-- and hidden:
--   grant pg_read_all_stats to leasehold_broker;

grant execute on function leasehold.enqueue(
    text, bytea, text, jsonb, int, interval, int, text, text, text
) to leasehold_producer;
grant execute on function leasehold.ack(text), leasehold.ack_or_fail(text) to leasehold_worker;
