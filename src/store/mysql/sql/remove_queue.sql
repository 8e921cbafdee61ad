-- ? queue
delete from leasehold_queue where id = ?
