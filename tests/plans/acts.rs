//! Acts that are functions, each met with something to do.

/// One of them.
pub(crate) struct Act {
    pub(crate) name: &'static str,
    /// SQL that makes the rows which it meets.
    pub(crate) before: &'static str,
    /// SQL that runs it.
    pub(crate) text: &'static str,
}

const LEASED: &str = "
    insert into leasehold.queue (id, name) values (900, 'q') on conflict do nothing;
    insert into leasehold.job (
        id, position, enqueued_at, available_at, ready_at, queue_id, max_attempts, priority, ordering_key, blocked, attempt,
        lease_id, lease_until, lease_duration, payload
    ) values
        (901, 901, now(), now(), now(), 900, 1, 4, 'k', false, 1, '00000000-0000-0000-0000-000000000001', now(), 1, ''),
        (902, 902, now(), now(), now(), 900, 9, 4, 'k', true, 0, null, null, null, ''),
        (903, null, now(), now(), now(), 900, 9, 4, null, false, 1, '00000000-0000-0000-0000-000000000003', now(), 1, '')
        on conflict do nothing;
    insert into leasehold.ordering_key (queue_id, ordering_key, head) values (900, 'k', 901)
        on conflict (queue_id, ordering_key) do update set head = 901;";

const CANCELLED: &str = "
    delete from leasehold.job; delete from leasehold.dead_job;
    insert into leasehold.queue (id, name) values (900, 'q') on conflict do nothing;
    insert into leasehold.job (
        id, position, enqueued_at, available_at, ready_at, queue_id, max_attempts, priority, ordering_key, blocked, attempt,
        lease_id, lease_until, lease_duration, cancel_requested, payload
    ) values
        (901, 901, now(), now(), now(), 900, 1, 4, 'k', false, 1, '00000000-0000-0000-0000-000000000001', now(), 1, true, ''),
        (902, 902, now(), now(), now(), 900, 9, 4, 'k', true, 0, null, null, null, false, ''),
        (903, null, now(), now(), now(), 900, 9, 4, null, false, 1, '00000000-0000-0000-0000-000000000003', now(), 1, false, '');
    insert into leasehold.ordering_key (queue_id, ordering_key, head) values (900, 'k', 901)
        on conflict (queue_id, ordering_key) do update set head = 901;";

const DEAD: &str = "
    insert into leasehold.queue (id, name) values (900, 'q') on conflict do nothing;
    delete from leasehold.job; delete from leasehold.dead_job;
    insert into leasehold.dead_job (
        id, position, lease_number, enqueued_at, available_at, dead_at, expires_at, queue_id, attempt, max_attempts, priority,
        ordering_key, content_type, last_error, payload
    ) values
        (951, null, 1, now(), now(), now(), now(), 900, 1, 1, 4, null, '', 'an error', ''),
        (952, 952, 1, now(), now(), now(), now(), 900, 1, 1, 4, 'k', '', 'an error', '')";

const ATTEND: &str = "select from leasehold.attend(
    7, 7::bigint << 32, 7::bigint << 32 | 4294967295, 'name', '1', 1, true, 60000000, array[(7::bigint << 32) + 1],
    array[(7::bigint << 32) + 2], array['pod'], array['peer'], array['shop'], array[' q '], array[1], array[1],
    array[null]::bigint[], array[1]::bigint[], array['p'], array['q'], array[1]::bigint[], array[1]::bigint[],
    array[901], array[900], array[1]::float8[], array[1]::float8[], array[1]::float8[], array[1]::float8[],
    array[1]::float8[], array[1]::float8[]
)";

pub(crate) const ACTS: &[Act] = &[
    Act {
        name: "enqueue_keyed_by",
        before: LEASED,
        text: "select from leasehold.enqueue_keyed_by(
            array[900, 900], array['a', 'b']::bytea[], array['', ''], array[null, null]::text[], array[4, 4]::smallint[],
            array[null, null]::bigint[], array[null, null]::timestamptz[], array[3, 3], array['k', 'l'], array['i', null],
            array['\\x01', null]::bytea[], array[1000000, null]::bigint[], array[null, null]::text[],
            array[null, null]::text[], true, 'shop'
        )",
    },
    Act {
        name: "extend_leases",
        before: LEASED,
        text: "select from leasehold.extend_leases(
            array[901, 7], array['00000000-0000-0000-0000-000000000001', '00000000-0000-0000-0000-000000000009']::uuid[],
            array[1000000, null]::bigint[]
        )",
    },
    Act {
        name: "give_back_leases",
        before: LEASED,
        text: "select leasehold.give_back_leases(
            array[903, 7], array['00000000-0000-0000-0000-000000000003', '00000000-0000-0000-0000-000000000009']::uuid[]
        )",
    },
    Act {
        name: "nack_leases",
        before: LEASED,
        text: "select from leasehold.nack_leases(
            array[901, 7], array['00000000-0000-0000-0000-000000000001', '00000000-0000-0000-0000-000000000009']::uuid[],
            array[1, 1]::smallint[], array[null, null]::bigint[], array[1, 1]::float8[], array['', ''], true
        )",
    },
    Act {
        name: "ack_leases",
        before: "delete from leasehold.job; delete from leasehold.dead_job",
        text: "select from leasehold.ack_leases(
            array[901, 7], array['00000000-0000-0000-0000-000000000001', '00000000-0000-0000-0000-000000000009']::uuid[], true
        )",
    },
    Act {
        name: "ack_leases of a head",
        before: LEASED,
        text: "select from leasehold.ack_leases(array[901], array['00000000-0000-0000-0000-000000000001']::uuid[], true)",
    },
    Act {
        name: "reap_leases",
        before: "delete from leasehold.job; delete from leasehold.dead_job",
        text: "select from leasehold.reap_leases('epoch', 10)",
    },
    Act { name: "reap_leases of a dying head", before: LEASED, text: "select from leasehold.reap_leases('epoch', 10)" },
    Act {
        name: "enqueue",
        before: LEASED,
        text: "select leasehold.enqueue('q', 'x', ordering_key => 'k'), leasehold.enqueue('new', 'x', ordering_key => 'k'),
            leasehold.enqueue('q', 'x')",
    },
    Act { name: "adopt_arrivals", before: "", text: "select from leasehold.adopt_arrivals(0, 10)" },
    Act {
        name: "ack",
        before: LEASED,
        text: "select leasehold.ack(translate(encode(b || substring(sha256(b) for 4), 'base64'), '+/', '-_'))
            from (select decode('0000000000000387' || repeat('0', 31) || '3' || repeat('0', 16), 'hex') b) x",
    },
    Act {
        name: "prune_dead_jobs",
        before: "update leasehold.dead_job set expires_at = now()",
        text: "select from leasehold.prune_dead_jobs('epoch', 10)",
    },
    Act {
        name: "prune_idempotency_keys",
        before: "update leasehold.idempotency_key set expires_at = now()",
        text: "select from leasehold.prune_idempotency_keys('epoch', 10)",
    },
    Act {
        name: "nack_jobs of one that is to be cancelled",
        before: CANCELLED,
        text: "select from leasehold.nack_jobs(
            array[901, 903], array['00000000-0000-0000-0000-000000000001', '00000000-0000-0000-0000-000000000003']::uuid[],
            array[1, 1]::smallint[], array[null, null]::bigint[], array[1, 1]::float8[], array['', ''], true
        )",
    },
    Act {
        name: "ack_jobs",
        before: CANCELLED,
        text: "select from leasehold.ack_jobs(
            array[901, 7], array['00000000-0000-0000-0000-000000000001', '00000000-0000-0000-0000-000000000009']::uuid[], true
        )",
    },
    Act {
        name: "give_back_leases of one that is to be cancelled",
        before: CANCELLED,
        text: "select leasehold.give_back_leases(array[901], array['00000000-0000-0000-0000-000000000001']::uuid[])",
    },
    Act {
        name: "give_back_unseen",
        before: CANCELLED,
        text: "select leasehold.give_back_unseen(array['00000000-0000-0000-0000-000000000001']::uuid[])",
    },
    Act {
        name: "reap_leases of one that is to be cancelled",
        before: CANCELLED,
        text: "select from leasehold.reap_leases('epoch', 10)",
    },
    Act { name: "cancel_jobs", before: CANCELLED, text: "select from leasehold.cancel_jobs(array[902, 903, 901, 7])" },
    Act {
        name: "cancel_jobs of a head",
        before: "update leasehold.job set lease_id = null, lease_until = null, lease_duration = null",
        text: "select from leasehold.cancel_jobs(array[901, 902, 903])",
    },
    Act { name: "run_job_now", before: LEASED, text: "select from leasehold.run_job_now(902)" },
    Act {
        name: "redrive_jobs",
        before: DEAD,
        text: "select from leasehold.redrive_jobs(array[951, 7])",
    },
    Act {
        name: "redrive_queue",
        before: DEAD,
        text: "select from leasehold.redrive_queue(900, null, null, null, 10, 5, null, null, 'err', null, null) a,
            leasehold.redrive_queue(900, now(), 1, now(), 10, 5, now(), now(), null, 'k', 'shop') b",
    },
    Act { name: "attend", before: "delete from leasehold.replica", text: ATTEND },
    Act {
        name: "attend after others are gone",
        before: "insert into leasehold.replica (id, started_at, seen_at, name, version) values (8, 'epoch', 'epoch', '', '')",
        text: ATTEND,
    },
    Act { name: "leave", before: "", text: "select leasehold.leave(7)" },
];
