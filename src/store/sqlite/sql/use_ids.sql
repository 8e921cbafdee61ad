-- ?1 how many
-- Uses up numbers that no job has had.
update sqlite_sequence set seq = seq + ?1 where name = 'job' returning seq
