-- ? [[queue, key in hexadecimal, content in hexadecimal, times that it comes again, retention], …] in the order of keys
-- Takes the keys, waiting for others who do. One that is new or has expired gets job 0.
insert into leasehold_idempotency_key (queue_id, name, job_id, content, hits, expires_at)
select v.queue_id, unhex(v.name), 0, unhex(v.content), v.again,
    timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6)) + v.retention
from json_table(?, '$[*]' columns (
    queue_id int path '$[0]', name varchar(400) path '$[1]', content varchar(64) path '$[2]',
    again bigint path '$[3]', retention bigint path '$[4]'
)) v
on duplicate key update
    hits = values(hits) + if(
        leasehold_idempotency_key.expires_at > timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6)),
        leasehold_idempotency_key.hits + 1, 0
    ),
    job_id = if(
        leasehold_idempotency_key.expires_at > timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6)),
        leasehold_idempotency_key.job_id, 0
    ),
    content = if(
        leasehold_idempotency_key.expires_at > timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6)),
        leasehold_idempotency_key.content, values(content)
    ),
    expires_at = if(
        leasehold_idempotency_key.expires_at > timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6)),
        leasehold_idempotency_key.expires_at, values(expires_at)
    )
