-- Sets the switch of prefix ?1 for reason ?2 at ?3. Where it has none yet there must be fewer than ?4.
insert into stock_switch (prefix, reason, set_at)
select ?1, ?2, ?3
where exists (select 1 from stock_switch where prefix = ?1)
    or (select count(*) from (select 1 from stock_switch limit ?4)) < ?4
on conflict (prefix) do update set reason = excluded.reason, set_at = excluded.set_at
