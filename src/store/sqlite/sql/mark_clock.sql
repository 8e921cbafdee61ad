-- ?1 now
-- In every transaction that changes anything: the clock of the next process starts at this instant or later.
update clock set last_at = ?1 where one = 1
