-- ? [name, …] in hexadecimal, none of which exists. With the table's own defaults.
insert into leasehold_queue (name)
select unhex(v.name) from json_table(?, '$[*]' columns (name varchar(256) path '$')) v
