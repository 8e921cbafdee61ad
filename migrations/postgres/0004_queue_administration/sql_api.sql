-- What services call, as before; leasehold.enqueue raises LH003 where the queue is switched off or being deleted, and
-- leasehold.ack keeps the job where its queue does.

create or replace function leasehold.enqueue(
    queue text,
    payload bytea,
    content_type text default '',
    headers jsonb default null,
    priority int default 4,
    delay interval default null,
    max_attempts int default null,
    ordering_key text default null,
    traceparent text default null,
    tracestate text default null
) returns bigint language plpgsql security definer
set search_path = pg_catalog, leasehold, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set timezone = 'UTC'
as $$
declare
    known_queue int;
    queue_attempts int;
    queue_closed boolean;
    queue_disabled text;
    stored bigint;
    due timestamptz := clock_timestamp() + coalesce(delay, interval '0');
    context text := coalesce(enqueue.traceparent, '');
    state text := coalesce(enqueue.tracestate, '');
    wrong text;
begin
    wrong := case
        when queue is null or queue !~ '^[a-z0-9][a-z0-9._-]{0,127}$' then
            'queue: must match [a-z0-9][a-z0-9._-]{0,127}'
        when payload is null then 'payload: must not be null'
        when octet_length(payload) > 1048576 then 'payload: must be at most 1048576 bytes'
        when octet_length(content_type) > 200 then 'content_type: must be at most 200 bytes'
        when priority is null or priority not between 0 and 9 then 'priority: must be 0 to 9'
        when delay < interval '0' then 'delay: must not be negative'
        when due > clock_timestamp() + interval '365 days' then 'delay: must be at most one year'
        when max_attempts not between 1 and 1000 then 'max_attempts: must be 1 to 1000'
        when ordering_key !~ '^[ -~]{1,200}$' then 'ordering_key: must be 1 to 200 printable ASCII characters'
        when jsonb_typeof(headers) not in ('object', 'null') then 'headers: must be a JSON object of texts'
    end;
    if wrong is not null then
        raise exception using errcode = '22023', message = wrong;
    end if;

    if jsonb_typeof(headers) = 'object' then
        select case
                when bool_or(jsonb_typeof(h.value) <> 'string') then 'headers: values must be texts'
                when bool_or(h.key !~ '^[ -~]{1,128}$') then 'headers: keys must be 1 to 128 printable ASCII characters'
                when count(1) > 32 then 'headers: must be at most 32 entries'
                when sum(octet_length(h.key) + octet_length(h.value #>> '{}')) > 16384 then
                    'headers: must be at most 16384 bytes together'
            end,
            coalesce(min(h.value #>> '{}') filter (where h.key = 'traceparent'), context),
            case
                when bool_or(h.key = 'traceparent') then
                    coalesce(min(h.value #>> '{}') filter (where h.key = 'tracestate'), '')
                else state
            end
        into wrong, context, state
        from jsonb_each(headers) h (key, value);
        if wrong is not null then
            raise exception using errcode = '22023', message = wrong;
        end if;
    end if;

    -- A malformed trace context is dropped, never an error.
    if context !~ '^(00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}|[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}(-[!-~]*)?)$'
        or context ~ '^(ff|00-.{52}-|..-0{32}-|..-.{32}-0{16}-)' or octet_length(context) > 512
    then
        context := null;
    end if;
    if context is null or octet_length(state) > 512 or state !~ '^[ -~]+$' then
        state := null;
    end if;

    select q.id, q.max_attempts, q.closing_since is not null, q.disabled_reason
    into known_queue, queue_attempts, queue_closed, queue_disabled
    from leasehold.queue q
    where q.name = enqueue.queue;
    if queue_closed or queue_disabled is not null then
        raise exception using errcode = 'LH003',
            message = format('queue %s takes no jobs: %s', queue, case
                when queue_closed then 'it is being deleted' else queue_disabled
            end),
            hint = 'An operator switched it off; try again when it is on.';
    end if;

    stored := nextval('leasehold.job_id_seq'::regclass);
    insert into leasehold.job (
        id, position, enqueued_at, available_at, ready_at, queue_id, max_attempts, priority, blocked, ordering_key,
        content_type, traceparent, tracestate, headers, payload
    )
    values (
        stored, case when enqueue.ordering_key is not null then stored end, clock_timestamp(), due, due,
        coalesce(known_queue, 0),
        coalesce(enqueue.max_attempts, queue_attempts, 20), enqueue.priority, true, enqueue.ordering_key,
        coalesce(enqueue.content_type, ''), context, state,
        nullif(nullif(headers, 'null'::jsonb), '{}'::jsonb)::text, payload
    );

    insert into leasehold.arrival (queue_id, ordering_key, job_id, queue_name)
    values (
        coalesce(known_queue, 0), enqueue.ordering_key, stored, case when known_queue is null then queue end
    );
    return stored;
end
$$;

create or replace function leasehold.ack(lease_token text) returns boolean language plpgsql security definer
set search_path = pg_catalog, leasehold, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
as $$
declare
    token bytea;
    job_id bigint;
    lease uuid;
    freed_queue int;
    freed_key text;
    place tid;
begin
    if lease_token ~ '^[A-Za-z0-9_-]{48}$' then
        token := decode(translate(lease_token, '-_', '+/'), 'base64');
    end if;
    if token is null or substring(token from 33) <> substring(sha256(substring(token for 32)) for 4) then
        raise exception using errcode = '22023', message = 'lease_token: malformed, or its check does not fit';
    end if;
    job_id := ('x' || encode(substring(token for 8), 'hex'))::bit(64)::bigint;
    lease := encode(substring(token from 9 for 16), 'hex')::uuid;

    if (
        select q.id from leasehold.queue q where q.acked_retention is not null and q.id > 0 order by q.id limit 1
    ) is not null then
        select j.ctid into place
        from leasehold.job j
        where j.id = job_id and j.lease_id is not distinct from lease
        for update;
        if found then
            perform leasehold.keep_acked(array[place]);
        end if;
    end if;

    delete from leasehold.job j
    where j.id = job_id and j.lease_id is not distinct from lease
    returning j.queue_id, j.ordering_key into freed_queue, freed_key;
    if not found then
        return false;
    end if;
    if freed_key is not null then
        insert into leasehold.arrival (queue_id, ordering_key) values (freed_queue, freed_key);
    end if;
    return true;
end
$$;

-- Functions are open to everybody by default. Who may call which is said in docs/roles.sql.
revoke execute on all functions in schema leasehold from public;
