-- The same table as on PostgreSQL, for SQLite.
create table job (
  id integer primary key,
  queue_id integer not null default 1,
  priority integer not null default 4,
  ready_at integer not null,
  payload blob not null,
  attempt integer not null default 0,
  lease_id blob,
  lease_until integer
) strict;
create index job_ready on job (queue_id, priority desc, ready_at, id) where lease_id is null;
create index job_lease on job (lease_until) where lease_id is not null;
