-- A job table as it usually is on MariaDB: a status, and an index on it.
create table job (
  id bigint not null auto_increment primary key,
  status tinyint not null default 0,
  ready_at bigint not null,
  lease_until bigint,
  attempt smallint not null default 0,
  token binary(16),
  payload blob not null,
  key by_status (status, ready_at, id)
);
