-- ?1 replica, ?2 name, ?3 version, ?4 running since, ?5 now
insert into replica (id, name, version, started_at, seen_at) values (?1, ?2, ?3, ?4, ?5)
on conflict (id) do update set name = excluded.name, version = excluded.version, seen_at = excluded.seen_at
