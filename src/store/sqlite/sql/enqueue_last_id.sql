-- The highest id ever given to a job; no row before the first one.
select seq from sqlite_sequence where name = 'job'
