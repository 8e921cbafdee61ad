-- ? now, ? ready_at, ? job, which is locked by this transaction
update leasehold_job set available_at = least(available_at, ?), ready_at = ? where id = ?
