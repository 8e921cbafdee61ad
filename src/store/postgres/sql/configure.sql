-- Sets session settings $1 to $2.
select set_config(u.name, u.value, false) from unnest($1::text[], $2::text[]) u (name, value)
