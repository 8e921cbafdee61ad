-- How many connections there are.
show global status where variable_name in ('Threads_connected', 'Prepared_stmt_count', 'Slaves_connected')
