"""Failure case 52: people who look at queues all the time must not bring them down."""

import threading
import time

from harness import LONG
from harness.calls import Stream, ack, enqueue, job
from harness.stubs import admin_pb as apb

VIEWER = (("leasehold-caller", "console"),)
DEAD, READY = (200_000, 50_000) if LONG else (15_000, 12_000)


def fill(postgres):
    """Rows past the broker."""
    with postgres.connect() as session:
        session.execute("insert into leasehold.queue (name) values ('watched'), ('served')")
        session.execute("""insert into leasehold.dead_job (id, lease_number, enqueued_at, available_at, dead_at, expires_at,
                           queue_id, attempt, max_attempts, priority, content_type, payload)
                           select -n, 1, now(), now(), now(), now() + interval '1 day',
                           (select id from leasehold.queue where name = 'watched'), 1, 1, 4, '', ''
                           from generate_series(1, %s) n""", [DEAD])
        session.execute("""insert into leasehold.job (enqueued_at, available_at, ready_at, queue_id, max_attempts, priority,
                           payload) select now(), now(), now(),
                           (select id from leasehold.queue where name = 'watched'), 9, n %% 10, ''
                           from generate_series(1, %s) n""", [READY])


def test_ten_viewers_count_and_jobs_go_through_all_the_same(brokers, postgres):
    broker = brokers(postgres.url)
    fill(postgres)
    stop, views, wrong = threading.Event(), [], []

    def view():
        admin = broker.admin()
        while not stop.is_set():
            request = apb.ListQueuesRequest(include_counts=True)
            found = {one.name: one.counts for one in admin.ListQueues(request, timeout=10, metadata=VIEWER).queues}
            watched = found["watched"]
            if (watched.ready.value, watched.ready.at_least, watched.dead.value, watched.dead.at_least) != (
                    10_000, True, 10_000, True):
                wrong.append(watched)
            views.append(time.monotonic())

    threads = [threading.Thread(target=view) for _ in range(10)]
    for thread in threads:
        thread.start()
    stub = broker.stub()
    stream = Stream(stub, "served", in_flight=10)
    for _ in range(20):
        enqueue(stub, *[job("served") for _ in range(10)])
        assert set(ack(stub, *[one.lease_token for one in stream.jobs(10, within=10)])) == {"OK"}
    stop.set()
    for thread in threads:
        thread.join()
    assert not wrong, wrong[:1]
    assert len(views) >= 10
    # Each statement of theirs names them, and none takes part in what is counted against somebody else.
    statements = [entry for entry in postgres.statements() if entry.caller == "console"]
    assert len(statements) >= len(views)
