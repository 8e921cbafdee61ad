-- A queue as small as a table can be that is claimed by SKIP LOCKED: what bare SQL is measured on.
create table job (
  id bigint generated always as identity primary key,
  queue_id integer not null,
  priority smallint not null,
  ready_at timestamptz not null default clock_timestamp(),
  payload bytea not null,
  attempt smallint not null default 0,
  lease_id uuid,
  lease_until timestamptz
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000);
create index job_ready on job (queue_id, priority desc, ready_at, id) where lease_id is null;
create index job_lease on job (lease_until) where lease_id is not null;
