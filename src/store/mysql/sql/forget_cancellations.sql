-- ? first, ? last
delete from leasehold_cancellation where lease_stream between ? and ?
