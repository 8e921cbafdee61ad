-- Sends payload $2 on channel $1, for each pair.
select pg_notify(u.channel, u.payload) from unnest($1::text[], $2::text[]) u (channel, payload)
