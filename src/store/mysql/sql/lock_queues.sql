-- Waits until nobody else brings queues into being: until the other's transaction ends. The lock on one row in place of
-- those that inserts take around each other's names.
select m.number from leasehold_schema_migration m where m.number = 1 for update
