-- The version of the library.
select sqlite_version() as version
