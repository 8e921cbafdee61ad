-- What the file says about itself.
select sqlite_version() as version,
    (select journal_mode from pragma_journal_mode) as journal_mode
