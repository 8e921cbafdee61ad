-- Answers, and says whether the server may be written to: one that was demoted still answers.
select @@global.read_only or @@global.innodb_read_only as read_only
