-- Keeps the budget of caller $1: $2 lanes, $3 microseconds of wait, a share of $4 millionths. Where it has none yet there must
-- be fewer than $5. One row where it was kept.
insert into leasehold.caller_budget (caller, max_lanes, max_wait, share)
select $1::text, $2::int, $3::bigint, $4::int
where exists (select from leasehold.caller_budget b where b.caller = $1::text)
    or (select count(*) from (select from leasehold.caller_budget b where b.caller > '' limit $5::bigint) c) < $5::bigint
on conflict (caller) do update set max_lanes = excluded.max_lanes, max_wait = excluded.max_wait, share = excluded.share,
    set_at = clock_timestamp()
returning 1 as kept
