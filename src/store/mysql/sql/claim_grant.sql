-- ? [[job, lease in hexadecimal, until, duration, attempt, lease number, stream, queue], …]
insert into leasehold_lease (job_id, token, lease_until, duration, queue_id, attempt, lease_number, stream)
select v.id, unhex(v.token), v.ends, v.duration, v.queue_id, v.attempt, v.lease_number, v.stream
from json_table(?, '$[*]' columns (
    id bigint path '$[0]', token varchar(32) path '$[1]', ends bigint path '$[2]', duration bigint path '$[3]',
    attempt int path '$[4]', lease_number bigint path '$[5]', stream bigint path '$[6]',
    queue_id int path '$[7]'
)) v
