-- ?1 reference, ?2 now, ?3 expires_at, ?4 caller, ?5 content, ?6 weight of its jobs on expiry
insert into reservation (reference, created_at, expires_at, caller, content, expiry_bytes)
values (?1, ?2, ?3, ?4, ?5, ?6)
returning id
