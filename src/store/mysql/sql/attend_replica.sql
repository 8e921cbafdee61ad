-- ? replica, ? name, ? version, ? running since, ? now
insert into leasehold_replica (id, name, version, started_at, seen_at) values (?, ?, ?, ?, ?)
on duplicate key update name = values(name), version = values(version), seen_at = values(seen_at)
