-- Whatever the server's settings are, the statements mean the same. To be completed with the two times.
set names utf8mb4 collate utf8mb4_bin,
    session sql_mode = 'STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION',
    session time_zone = '+00:00',
    session autocommit = 1,
    session completion_type = 'NO_CHAIN',
    session sql_safe_updates = 0,
    session sql_select_limit = 18446744073709551615,
    session sql_auto_is_null = 0,
    session wait_timeout = 300,
    session lock_wait_timeout = {statement},
    session innodb_lock_wait_timeout = {lock}
