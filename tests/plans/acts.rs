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

pub(crate) const ACTS: &[Act] = &[
    Act {
        name: "enqueue_keyed",
        before: LEASED,
        text: "select from leasehold.enqueue_keyed(
            array[900, 900], array['a', 'b']::bytea[], array['', ''], array[null, null]::text[], array[4, 4]::smallint[],
            array[null, null]::bigint[], array[null, null]::timestamptz[], array[3, 3], array['k', 'l'], array['i', null],
            array['\\x01', null]::bytea[], array[1000000, null]::bigint[], array[null, null]::text[],
            array[null, null]::text[], true
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
];
