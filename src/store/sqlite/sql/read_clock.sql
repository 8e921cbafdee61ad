-- The last instant written.
select last_at from clock
