-- Answers, and says whether the server may be written to: one that was demoted still answers.
select current_setting('transaction_read_only')::boolean as read_only
