-- ?1 replica, ?2 not seen since then
-- Others that are gone.
select id from replica where id <> ?1 and seen_at < ?2 limit 10
