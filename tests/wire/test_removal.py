"""Purging queues and deleting them: in steps, with progress, and saying what was done however it ends."""

import threading
import time

import grpc
import pytest

from harness import LONG
from harness.calls import CALLER, Failed, Stream, ack, enqueue, eventually, failure, job, nack
from harness.operators import audit, counts, delete, get, purge, update
from harness.stubs import admin_pb as apb


def fill(stub, queue, count, **fields):
    """Many small jobs."""
    for at in range(0, count, 1000):
        enqueue(stub, *[job(queue, b"x", **fields) for _ in range(min(1000, count - at))], timeout=30)


def test_a_purge_takes_what_was_asked_for_and_tells_its_progress(broker, stub, admin):
    fill(stub, "purged", 1300)
    enqueue(stub, *[job("purged", delay=3600) for _ in range(3)], *[job("purged", ordering_key="k") for _ in range(3)])
    leased = Stream(stub, "purged", in_flight=10, lease=60).jobs(10)
    [dry] = purge(admin, "purged", "READY", dry_run=True)
    assert (dry.removed, dry.done, dry.would_remove.value, dry.would_remove.at_least) == (0, True, 1291, False)
    [dry] = purge(admin, "purged", "READY", dry_run=True, limit=5)
    assert dry.would_remove.value == 5
    frames = purge(admin, "purged", "READY", limit=700)
    assert [frame.done for frame in frames] == [False] * (len(frames) - 1) + [True]
    removed = [0, *(frame.removed for frame in frames)]
    steps = [after - before for before, after in zip(removed, removed[1:])]
    assert removed[-1] == 700 and len(steps) > 1 and all(0 < step <= 500 for step in steps), removed
    assert counts(admin, "purged") == {"ready": 591, "scheduled": 3, "blocked": 2, "leased": 10, "dead": 0}
    frames = purge(admin, "purged", "READY", "SCHEDULED", "BLOCKED")
    assert frames[-1].removed == 591 + 3 + 2
    assert counts(admin, "purged") == {"ready": 0, "scheduled": 0, "blocked": 0, "leased": 10, "dead": 0}
    assert set(ack(stub, *[one.lease_token for one in leased])) == {"OK"}, "what is leased stays"
    lines = eventually(lambda: len(found := audit(broker, "queue=purged ")) >= 2 and found, what="two lines")
    assert [line["done"] for line in lines] == ["removed=700", "removed=596"]


def test_dead_jobs_are_purged_and_a_key_goes_on_behind_a_purged_head(stub, admin):
    enqueue(stub, *[job("heads", at, ordering_key="k") for at in (b"1", b"2", b"3")], job("heads", b"dies"))
    stream = Stream(stub, "heads", in_flight=2)
    for one in stream.jobs(2):
        nack(stub, one.lease_token, action="REJECT" if one.payload == b"dies" else "RETRY", delay=3600)
    stream.quiet(0.3)
    assert counts(admin, "heads") == {"ready": 0, "scheduled": 1, "blocked": 2, "leased": 0, "dead": 1}
    assert purge(admin, "heads", "DEAD")[-1].removed == 1
    assert purge(admin, "heads", "SCHEDULED", limit=1)[-1].removed == 1
    assert stream.jobs(1, within=3)[0].payload == b"2"


def test_a_purge_is_refused_with_every_fault_named(admin):
    for fields, wrong in [({"states": []}, ["states"]),
                          ({"states": ["JOB_STATE_LEASED"]}, ["states[0]"]),
                          ({"states": ["JOB_STATE_READY", "JOB_STATE_UNSPECIFIED"]}, ["states[1]"]),
                          ({"states": [77]}, ["states[0]"])]:
        call = admin.PurgeQueue(apb.PurgeQueueRequest(queue="any", **fields), timeout=10)
        said = failure(lambda: list(call))
        assert (said.code, said.reason, said.outcome, said.fields) == ("INVALID_ARGUMENT", "INVALID_FIELD", "not-applied",
                                                                       wrong), said


def test_a_purge_leaves_what_was_enqueued_later(stub, admin):
    enqueue(stub, job("early"))
    stamp = apb.PurgeQueueRequest().enqueued_before
    stamp.FromMicroseconds(1_000_000)
    assert purge(admin, "early", "READY", enqueued_before=stamp)[-1].removed == 0
    stamp.FromMicroseconds(int((time.time() + 3600) * 1e6))
    assert purge(admin, "early", "READY", enqueued_before=stamp)[-1].removed == 1


@pytest.mark.settings(queues_purge_step=1)
def test_whoever_closes_the_stream_ends_the_purge_after_its_step(broker, stub, admin):
    fill(stub, "closed", 2000)
    call = admin.PurgeQueue(apb.PurgeQueueRequest(queue="closed", states=["JOB_STATE_READY"]), timeout=60, metadata=CALLER)
    assert [next(call).removed for _ in range(3)] == [1, 2, 3]
    call.cancel()
    [line] = eventually(lambda: audit(broker, "queue=closed"), what="the end of the purge")
    assert (line["result"], line["outcome"]) == ("stopped", "applied")
    removed = int(line["done"].removeprefix("removed="))
    assert 3 <= removed < 1000
    assert counts(admin, "closed")["ready"] == 2000 - removed, "it said what it did"


@pytest.mark.own_broker
@pytest.mark.settings(queues_purge_step=1)
def test_a_drain_ends_a_purge_that_says_what_it_did(broker, stub, admin):
    fill(stub, "drained", 3000)
    call = admin.PurgeQueue(apb.PurgeQueueRequest(queue="drained", states=["JOB_STATE_READY"]), timeout=60, metadata=CALLER)
    next(call)
    broker.terminate()
    said = failure(lambda: list(call))
    assert (said.code, said.reason, said.outcome) == ("UNAVAILABLE", "DRAINING", "unknown"), said
    assert broker.process.wait(25) == 0
    removed = int(said.message.rsplit("removed=", 1)[1])
    [line] = audit(broker, "queue=drained")
    assert (line["result"], line["done"]) == ("DRAINING", f"removed={removed}")
    broker.hang_up()
    broker.start()
    assert 0 < removed < 3000
    assert counts(broker.admin(), "drained")["ready"] == 3000 - removed


def test_a_purge_passes_over_what_a_services_transaction_holds(brokers, postgres):
    broker = brokers(postgres.url)
    ids = enqueue(broker.stub(), *[job("held") for _ in range(5)])
    with postgres.connect(autocommit=False) as session:
        session.execute("select id from leasehold.job where id = %s for update", [ids[1]])
        assert purge(broker.admin(), "held", "READY", timeout=5)[-1].removed == 4
        session.rollback()
    assert purge(broker.admin(), "held", "READY")[-1].removed == 1


def test_a_queue_with_live_jobs_is_not_deleted_and_stays_in_use(broker, stub, admin):
    enqueue(stub, job("full"))
    said = failure(delete, admin, "full")
    assert (said.code, said.reason, said.outcome) == ("FAILED_PRECONDITION", "QUEUE_NOT_EMPTY", "not-applied"), said
    assert "PreconditionFailure" in said.details
    assert not get(admin, "full").deleting
    enqueue(stub, job("full"))
    leased = Stream(stub, "full", in_flight=1, lease=60).jobs(1)[0]
    said = failure(delete, admin, "full", purge=True)
    assert said.reason == "QUEUE_NOT_EMPTY" and "leased" in said.message
    assert counts(admin, "full") == {"ready": 1, "scheduled": 0, "blocked": 0, "leased": 1, "dead": 0}, "nothing was removed"
    assert ack(stub, leased.lease_token) == ["OK"]
    lines = eventually(lambda: len(found := audit(broker, "queue=full")) >= 2 and found, what="two lines")
    assert {line["result"] for line in lines} == {"QUEUE_NOT_EMPTY"}


@pytest.mark.settings(queues_refresh_interval="1s")
def test_a_deleted_queue_is_gone_with_all_that_was_in_it(broker, stub, admin):
    enqueue(stub, job("doomed"), job("doomed", delay=3600), *[job("doomed", ordering_key="k") for _ in range(3)],
            job("doomed", b"x", idempotency_key="i"))
    stream = Stream(stub, "doomed", in_flight=1, lease=60)
    leased = stream.jobs(1)[0]
    update(admin, "doomed", paused=True)
    nack(stub, leased.lease_token, action="REJECT")
    assert counts(admin, "doomed")["leased"] == 0
    frames = delete(admin, "doomed", purge=True)
    assert [frame.done for frame in frames] == [False] * (len(frames) - 1) + [True]
    assert frames[-1].removed >= 5
    assert failure(get, admin, "doomed").code == "NOT_FOUND"
    assert failure(delete, admin, "doomed").code == "NOT_FOUND"
    if broker.database:
        for table in ("job", "dead_job", "idempotency_key", "ordering_key", "queue"):
            assert broker.database.one(f"select count(*) from leasehold.{table}") == 0, table
    # Its name is free; the key that it knew is new; the stream that waited for it is served.
    enqueue(stub, job("doomed", b"anew", idempotency_key="i"))
    assert stream.jobs(1, within=15)[0].payload == b"anew"
    assert get(admin, "doomed").settings.paused is False


def test_no_job_is_stored_in_a_queue_that_is_being_deleted(brokers, postgres):
    """Producers go on through both replicas while the queue goes and comes again: each job that was taken in is there, in
    a queue that is there, or was purged with it."""
    first = brokers(postgres.url, name="one", queues_refresh_interval="1s")
    second = brokers(postgres.url, name="two", queues_refresh_interval="1s")
    stop, stored, refusals, wrong = threading.Event(), [], set(), []

    def produce(broker, key):
        stub = broker.stub()
        while not stop.is_set():
            try:
                stored.extend(enqueue(stub, job("churn", ordering_key=key) if key else job("churn")))
            except grpc.RpcError as error:
                said = Failed(error)
                refusals.add(said.reason)
                if said.reason not in ("DISABLED", "CONFLICT") or said.outcome != "not-applied":
                    wrong.append(said)

    threads = [threading.Thread(target=produce, args=(broker, key)) for broker in (first, second) for key in (None, "k")]
    enqueue(first.stub(), job("churn"))
    for thread in threads:
        thread.start()
    removed = 0
    for at in range(6 if LONG else 2):
        removed += delete((first, second)[at % 2].admin(), "churn", purge=True)[-1].removed
        eventually(lambda before=len(stored): len(stored) > before + 20, what="jobs in the new queue")
    stop.set()
    for thread in threads:
        thread.join()
    assert not wrong, wrong[:3]
    assert "DISABLED" in refusals
    orphans = postgres.one("select count(*) from leasehold.job j left join leasehold.queue q on q.id = j.queue_id"
                           " where q.id is null")
    assert orphans == 0
    assert postgres.one("select count(*) from leasehold.job") + removed == len(stored) + 1


def test_a_deletion_waits_for_a_services_transaction_that_stored_a_job_before_it(brokers, postgres):
    broker = brokers(postgres.url, queues_refresh_interval="500ms")
    admin = broker.admin()
    update(admin, "waits", create=True)
    frames, ended = [], []

    def run():
        try:
            call = admin.DeleteQueue(apb.DeleteQueueRequest(queue="waits", purge=True), timeout=60, metadata=CALLER)
            for frame in call:
                frames.append(frame)
        except grpc.RpcError as error:
            ended.append(Failed(error))

    with postgres.connect(autocommit=False) as session:
        session.execute("select leasehold.enqueue('waits', 'x')")
        thread = threading.Thread(target=run)
        thread.start()
        eventually(lambda: get(admin, "waits").deleting, what="the beginning")
        begun = time.monotonic()
        while time.monotonic() - begun < 2:
            assert thread.is_alive(), (frames, ended)
            time.sleep(0.05)
        session.commit()
    thread.join(20)
    assert not ended and frames[-1].done and frames[-1].removed == 1, (frames, ended)
    assert postgres.one("select count(*) from leasehold.job") == 0
