-- How many standbys there are: connected now, or expected by a slot.
select (select count(1) from pg_stat_replication) as connected,
    (select count(1) from pg_replication_slots s where s.slot_type = 'physical' and not s.temporary) as slots
