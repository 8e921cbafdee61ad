-- ? queue
update leasehold_queue set closing_since = null, version = version + 1 where id = ?
