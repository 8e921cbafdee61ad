-- ? reference, ? now, ? expires_at, ? expires_at, ? caller, ? content, ? weight of its jobs on expiry
-- Takes the reference, waiting for another call that has it. One that is known is written to.
insert into leasehold_reservation (reference, created_at, expires_at, live_until, caller, content, expiry_bytes)
values (?, ?, ?, ?, ?, ?, ?)
on duplicate key update hits = leasehold_reservation.hits + 1
