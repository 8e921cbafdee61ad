-- What services may call in transactions of their own. These procedures only append, beside the job and the lease that an ack
-- deletes: a service's transaction, however long, keeps nobody waiting, and what it left is adopted within a second of its
-- commit.
--
-- Each error has a number of its own, 30001 to 30022, since many drivers do not show the SQLSTATE.
--
-- They run with the rights of their owner, so that a service needs none but to call them, and refuse to run at another level
-- than READ COMMITTED, at which their reads would lock what lies beside and stop every claim, or not see the lease.

drop procedure if exists leasehold_enqueue;

-- next
-- Stores a job in the current transaction and answers with its id. A queue that does not exist comes into being with the
-- default settings once the job is adopted. Options are a JSON object, or null: content_type, headers, priority,
-- delay_seconds, max_attempts, ordering_key, traceparent, tracestate. Arguments keep the rules of the wire contract's NewJob;
-- one that breaks them raises 22023.
create procedure leasehold_enqueue(
    in queue_name varchar(1000) character set utf8mb4 collate utf8mb4_bin,
    in job_payload longblob,
    in job_options longtext character set utf8mb4 collate utf8mb4_bin,
    out job_id bigint
)
modifies sql data
sql security definer
begin
    declare now_at bigint default timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6));
    declare options longtext character set utf8mb4 collate utf8mb4_bin default coalesce(job_options, '{}');
    declare wrong varchar(200) character set utf8mb4;
    declare stranger varchar(1000) character set utf8mb4 collate utf8mb4_bin;
    declare type_of varchar(20) character set utf8mb4 default '';
    declare headers longtext character set utf8mb4 collate utf8mb4_bin;
    declare header_count int default 0;
    declare header_bytes bigint default 0;
    declare bad_names int default 0;
    declare bad_values int default 0;
    declare has_context boolean default false;
    declare content_type longtext character set utf8mb4 collate utf8mb4_bin default '';
    declare ordering_key longtext character set utf8mb4 collate utf8mb4_bin;
    declare context longtext character set utf8mb4 collate utf8mb4_bin default '';
    declare context_state longtext character set utf8mb4 collate utf8mb4_bin default '';
    declare priority bigint default 4;
    declare delay_us decimal(30, 0) default 0;
    declare attempts bigint;
    declare known_queue int;
    declare queue_attempts int;
    declare queue_closing bigint;
    declare queue_disabled mediumtext character set utf8mb4;
    declare continue handler for not found begin end;

    if coalesce(
        /*!80000 @@session.transaction_isolation */ /*M!100600 @@session.tx_isolation */, ''
    ) <> 'READ-COMMITTED' then
        signal sqlstate '25001' set mysql_errno = 30001,
            message_text = 'leasehold: set session transaction isolation level read committed first';
    end if;

    if not coalesce(json_valid(options), 0) or json_type(options) <> 'OBJECT' then
        signal sqlstate '22023' set mysql_errno = 30022, message_text = 'options: must be a JSON object or null';
    end if;
    select min(o.name) into stranger
    from json_table(json_keys(options), '$[*]' columns (name varchar(1000) character set utf8mb4 path '$')) o
    where o.name not in (
        'content_type', 'headers', 'priority', 'delay_seconds', 'max_attempts', 'ordering_key', 'traceparent', 'tracestate'
    );
    if stranger is not null then
        set wrong = concat('options: no such option: ', left(stranger, 100));
        signal sqlstate '22023' set mysql_errno = 30022, message_text = wrong;
    end if;

    set wrong = case
        when queue_name is null or not queue_name regexp '^[a-z0-9][a-z0-9._-]{0,127}\\z' then
            'queue: must match [a-z0-9][a-z0-9._-]{0,127}'
        when job_payload is null then 'payload: must not be null'
        when octet_length(job_payload) > 1048576 then 'payload: must be at most 1048576 bytes'
    end;

    set type_of = coalesce(json_type(json_extract(options, '$.content_type')), 'NULL');
    if type_of = 'STRING' then
        set content_type = json_unquote(json_extract(options, '$.content_type'));
    elseif type_of <> 'NULL' then
        set wrong = coalesce(wrong, 'content_type: must be a text');
    end if;
    if octet_length(content_type) > 200 then
        set wrong = coalesce(wrong, 'content_type: must be at most 200 bytes');
    end if;

    set type_of = coalesce(json_type(json_extract(options, '$.priority')), 'NULL');
    if type_of in ('INTEGER', 'UNSIGNED INTEGER') then
        set priority = json_extract(options, '$.priority');
    elseif type_of <> 'NULL' then
        set priority = -1;
    end if;
    if priority not between 0 and 9 then
        set wrong = coalesce(wrong, 'priority: must be 0 to 9');
    end if;

    set type_of = coalesce(json_type(json_extract(options, '$.delay_seconds')), 'NULL');
    if type_of in ('INTEGER', 'UNSIGNED INTEGER', 'DOUBLE', 'DECIMAL') then
        set delay_us = round(least(greatest(
            cast(json_unquote(json_extract(options, '$.delay_seconds')) as decimal(30, 6)), -1), 1000000000
        ) * 1000000);
    elseif type_of <> 'NULL' then
        set wrong = coalesce(wrong, 'delay_seconds: must be a number');
    end if;
    if delay_us < 0 or delay_us > 31536000000000 then
        set wrong = coalesce(wrong, 'delay_seconds: must be 0 to 31536000, which is one year');
    end if;

    set type_of = coalesce(json_type(json_extract(options, '$.max_attempts')), 'NULL');
    if type_of in ('INTEGER', 'UNSIGNED INTEGER') then
        set attempts = json_extract(options, '$.max_attempts');
    elseif type_of <> 'NULL' then
        set attempts = -1;
    end if;
    if attempts not between 1 and 1000 then
        set wrong = coalesce(wrong, 'max_attempts: must be 1 to 1000');
    end if;

    set type_of = coalesce(json_type(json_extract(options, '$.ordering_key')), 'NULL');
    if type_of = 'STRING' then
        set ordering_key = json_unquote(json_extract(options, '$.ordering_key'));
    elseif type_of <> 'NULL' then
        set ordering_key = '';
    end if;
    if not ordering_key regexp '^[ -~]{1,200}\\z' then
        set wrong = coalesce(wrong, 'ordering_key: must be 1 to 200 printable ASCII characters');
    end if;

    -- A malformed trace context is dropped, never an error.
    if json_type(json_extract(options, '$.traceparent')) = 'STRING' then
        set context = json_unquote(json_extract(options, '$.traceparent'));
    end if;
    if json_type(json_extract(options, '$.tracestate')) = 'STRING' then
        set context_state = json_unquote(json_extract(options, '$.tracestate'));
    end if;

    set type_of = coalesce(json_type(json_extract(options, '$.headers')), 'NULL');
    if type_of = 'OBJECT' then
        set headers = json_extract(options, '$.headers');
        -- Names first: an odd one makes no path.
        select count(*), coalesce(sum(not h.name regexp '^[ -~]{1,128}\\z'), 0) into header_count, bad_names
        from json_table(json_keys(headers), '$[*]' columns (name varchar(1000) character set utf8mb4 path '$')) h;
        select
            coalesce(sum(coalesce(json_type(json_extract(headers, concat('$.', json_quote(h.name)))), '') <> 'STRING'), 0),
            coalesce(sum(
                octet_length(h.name)
                + octet_length(json_unquote(json_extract(headers, concat('$.', json_quote(h.name)))))
            ), 0),
            coalesce(max(h.name = 'traceparent'), 0)
        into bad_values, header_bytes, has_context
        from json_table(json_keys(headers), '$[*]' columns (name varchar(1000) character set utf8mb4 path '$')) h
        where bad_names = 0;
        set wrong = coalesce(wrong, case
            when bad_names > 0 then 'headers: keys must be 1 to 128 printable ASCII characters'
            when bad_values > 0 then 'headers: values must be texts'
            when header_count > 32 then 'headers: must be at most 32 entries'
            when header_bytes > 16384 then 'headers: must be at most 16384 bytes together'
        end);
        if has_context then
            set context = coalesce(json_unquote(json_extract(headers, '$.traceparent')), '');
            set context_state = coalesce(json_unquote(json_extract(headers, '$.tracestate')), '');
        end if;
        if header_count = 0 then
            set headers = null;
        end if;
    elseif type_of <> 'NULL' then
        set wrong = coalesce(wrong, 'headers: must be a JSON object of texts');
    end if;
    if wrong is not null then
        signal sqlstate '22023' set mysql_errno = 30022, message_text = wrong;
    end if;

    if not context regexp
            '^(00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}|[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}(-[!-~]*)?)\\z'
        or context regexp '^(ff|00-.{52}-|..-0{32}-|..-.{32}-0{16}-)' or octet_length(context) > 512
    then
        set context = null;
    end if;
    if context is null or octet_length(context_state) > 512 or not context_state regexp '^[ -~]+\\z' then
        set context_state = null;
    end if;

    select q.id, q.max_attempts, q.closing_since, q.disabled_reason
    into known_queue, queue_attempts, queue_closing, queue_disabled
    from leasehold_queue q force index (queue_name)
    where q.name = cast(queue_name as binary);
    if queue_closing is not null or queue_disabled is not null then
        set wrong = left(concat('queue ', queue_name, ' takes no jobs: ', case
            when queue_closing is not null then 'it is being deleted' else queue_disabled
        end), 120);
        signal sqlstate 'LH003' set mysql_errno = 30003, message_text = wrong;
    end if;

    insert into leasehold_job (
        queue_id, priority, max_attempts, enqueued_at, available_at, ready_at, payload_bytes, ordering_key, content_type,
        traceparent, tracestate, headers, payload
    )
    values (
        coalesce(known_queue, 0), priority, coalesce(attempts, queue_attempts, 20), now_at, now_at + delay_us,
        now_at + delay_us, octet_length(job_payload), cast(ordering_key as binary), content_type, context, context_state, headers, job_payload
    );
    set job_id = last_insert_id();
    if ordering_key is not null then
        insert into leasehold_blocked (queue_id, ordering_key, position, id, attempt, lease_number)
        values (coalesce(known_queue, 0), cast(ordering_key as binary), job_id, job_id, 0, 0);
    end if;
    insert into leasehold_arrival (stored_at, job_id, queue_id, ordering_key, queue_name)
    values (
        now_at, job_id, coalesce(known_queue, 0), cast(ordering_key as binary),
        if(known_queue is null, cast(queue_name as binary), null)
    );
end

-- next
drop procedure if exists leasehold_ack;

-- next
-- Ends the job of a lease in the current transaction: with the effect that the transaction writes it stands or falls. False
-- where the lease decides nothing any more. A malformed token raises 22023.
create procedure leasehold_ack(
    in lease_token varchar(1000) character set utf8mb4 collate utf8mb4_bin,
    out acked boolean
)
modifies sql data
sql security definer
begin
    declare now_at bigint default timestampdiff(microsecond, timestamp '1970-01-01 00:00:00', utc_timestamp(6));
    declare bits varbinary(36);
    declare leased_job bigint;
    declare standing varbinary(16);
    declare freed_queue int;
    declare freed_key varbinary(200);
    declare retention bigint;
    declare continue handler for not found begin end;

    set acked = false;
    if coalesce(
        /*!80000 @@session.transaction_isolation */ /*M!100600 @@session.tx_isolation */, ''
    ) <> 'READ-COMMITTED' then
        signal sqlstate '25001' set mysql_errno = 30001,
            message_text = 'leasehold: set session transaction isolation level read committed first';
    end if;
    if lease_token regexp '^[A-Za-z0-9_-]{48}\\z' then
        set bits = from_base64(replace(replace(lease_token, '-', '+'), '_', '/'));
    end if;
    if bits is null or hex(substr(bits, 33, 4)) <> upper(left(sha2(substr(bits, 1, 32), 256), 8)) then
        signal sqlstate '22023' set mysql_errno = 30022, message_text = 'lease_token: malformed, or its check does not fit';
    end if;
    set leased_job = cast(conv(hex(substr(bits, 1, 8)), 16, -10) as signed);

    -- Looked at before the job is locked, so that a lost lease locks nothing, and again afterwards.
    select l.token into standing from leasehold_lease l force index (primary) where l.job_id = leased_job;
    if coalesce(standing = substr(bits, 9, 16), false) then
        select j.queue_id, j.ordering_key into freed_queue, freed_key
        from leasehold_job j force index (primary)
        where j.id = leased_job
        for update;
        set standing = null;
        select l.token into standing from leasehold_lease l force index (primary) where l.job_id = leased_job;
        set acked = coalesce(standing = substr(bits, 9, 16), false);
    end if;

    if acked then
        select q.acked_retention into retention from leasehold_queue q force index (primary) where q.id = freed_queue;
        if retention is not null then
            insert into leasehold_acked_job (
                id, queue_id, priority, attempt, max_attempts, lease_number, position, enqueued_at, available_at, acked_at,
                expires_at, payload_bytes, ordering_key, idempotency_key, caller, content_type, traceparent, tracestate,
                headers, last_error, payload
            )
            select j.id, j.queue_id, j.priority, l.attempt, j.max_attempts, l.lease_number, j.position, j.enqueued_at,
                j.available_at, now_at, now_at + retention, j.payload_bytes, j.ordering_key, j.idempotency_key, j.caller,
                j.content_type, j.traceparent, j.tracestate, j.headers, j.last_error, j.payload
            from leasehold_job j force index (primary)
            straight_join leasehold_lease l force index (primary) on l.job_id = j.id
            where j.id = leased_job;
        end if;
        delete from leasehold_lease where job_id = leased_job;
        delete from leasehold_job where id = leased_job;
        if freed_key is not null then
            insert into leasehold_arrival (stored_at, queue_id, ordering_key) values (now_at, freed_queue, freed_key);
        end if;
    end if;
end

-- next
drop procedure if exists leasehold_ack_or_fail;

-- next
-- The same, and raises LH002 where leasehold_ack answers false: the transaction cannot go on by mistake.
create procedure leasehold_ack_or_fail(in lease_token varchar(1000) character set utf8mb4 collate utf8mb4_bin)
modifies sql data
sql security definer
begin
    declare acked boolean;
    call leasehold_ack(lease_token, acked);
    if not acked then
        signal sqlstate 'LH002' set mysql_errno = 30002, message_text = 'the lease is lost or its job is gone: roll back';
    end if;
end
