-- The server's version, as it says it.
select current_setting('server_version') as version
