-- Takes replica $1 out. See leasehold.leave.
select leasehold.leave($1::bigint)
