//! Acts on queues that are functions, each met with something to do.

use super::acts::Act;

const QUEUE: &str = "
    insert into leasehold.queue (id, name, time_to_live, acked_retention) values (910, 'r', 1000000, 1000000)
        on conflict do nothing;
    delete from leasehold.job where queue_id = 910;
    delete from leasehold.dead_job where queue_id = 910;
    delete from leasehold.acked_job where queue_id = 910;
    insert into leasehold.job (
        id, position, enqueued_at, available_at, ready_at, queue_id, max_attempts, priority, ordering_key, blocked, attempt,
        lease_id, lease_until, lease_duration, payload
    ) values
        (911, 911, now(), now(), now() - interval '1 hour', 910, 1, 4, 'k', false, 0, null, null, null, ''),
        (912, 912, now(), now(), now(), 910, 9, 4, 'k', true, 0, null, null, null, ''),
        (913, null, now(), now(), now() + interval '1 hour', 910, 9, 4, null, false, 0, null, null, null, ''),
        (914, null, now(), now(), now(), 910, 9, 4, null, false, 1, '00000000-0000-0000-0000-000000000004', now(), 1, '');
    insert into leasehold.ordering_key (queue_id, ordering_key, head) values (910, 'k', 911), (910, 'stray', 7)
        on conflict (queue_id, ordering_key) do update set head = excluded.head;
    insert into leasehold.dead_job (
        id, lease_number, enqueued_at, available_at, dead_at, expires_at, queue_id, attempt, max_attempts, priority,
        content_type, payload
    ) values (915, 1, now(), now(), now(), now(), 910, 1, 1, 4, '', '');
    insert into leasehold.acked_job (
        id, lease_number, enqueued_at, available_at, acked_at, expires_at, queue_id, attempt, max_attempts, priority,
        content_type, payload
    ) values (916, 1, now(), now(), now(), now(), 910, 1, 1, 4, '', '');
    insert into leasehold.idempotency_key (queue_id, key, job_id, content, expires_at) values (910, 'i', 911, '', now())
        on conflict do nothing;";

pub(crate) const ACTS: &[Act] = &[
    Act {
        name: "ack_jobs of a queue that keeps them",
        before: QUEUE,
        text: "select from leasehold.ack_jobs(
            array[914, 7], array['00000000-0000-0000-0000-000000000004', '00000000-0000-0000-0000-000000000009']::uuid[], true
        )",
    },
    Act {
        name: "ack_jobs where no queue keeps them",
        before: "update leasehold.queue set acked_retention = null",
        text: "select from leasehold.ack_jobs(array[914], array['00000000-0000-0000-0000-000000000004']::uuid[], true)",
    },
    Act {
        name: "purge_waiting of ready ones",
        before: QUEUE,
        text: "select from leasehold.purge_waiting(910, true, now() + interval '1 hour', 'epoch', 0, 10)",
    },
    Act {
        name: "purge_waiting of scheduled ones",
        before: QUEUE,
        text: "select from leasehold.purge_waiting(910, false, now() + interval '1 hour', 'epoch', 0, 10)",
    },
    Act {
        name: "purge_blocked",
        before: QUEUE,
        text: "select from leasehold.purge_blocked(910, now() + interval '1 hour', '', 0, 10)",
    },
    Act {
        name: "purge_dead",
        before: QUEUE,
        text: "select from leasehold.purge_dead(910, now() + interval '1 hour', 'epoch', 0, 10)",
    },
    Act {
        name: "purge_acked",
        before: QUEUE,
        text: "select from leasehold.purge_acked(910, now() + interval '1 hour', 0, 10)",
    },
    Act {
        name: "expire_ready_jobs",
        before: QUEUE,
        text: "select from leasehold.expire_ready_jobs(array[910, 7], array['epoch', 'epoch']::timestamptz[], 10)",
    },
    Act { name: "prune_acked_jobs", before: QUEUE, text: "select from leasehold.prune_acked_jobs('epoch', 10)" },
    Act { name: "clear_queue of idempotency keys", before: QUEUE, text: "select leasehold.clear_queue(910, 10)" },
    Act {
        name: "clear_queue of ordering keys",
        before: "delete from leasehold.idempotency_key",
        text: "select leasehold.clear_queue(910, 10)",
    },
];
