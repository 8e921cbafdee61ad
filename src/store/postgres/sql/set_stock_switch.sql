-- Sets the switch of prefix $1 with reason $2. A prefix without one gets none where $3 have one: no answer.
insert into leasehold.stock_switch as s (prefix, reason)
select $1::text, $2::text
where exists (select from leasehold.stock_switch o where o.prefix = $1::text)
    or (select count(1) from (select from leasehold.stock_switch o where o.prefix >= '' limit $3::bigint) o) < $3::bigint
on conflict (prefix) do update set reason = excluded.reason, set_at = clock_timestamp()
returning s.prefix, s.reason, s.set_at
