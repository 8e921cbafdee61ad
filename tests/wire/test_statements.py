"""What the database sees: callers in every statement, no transaction left open, fates that stay apart."""

import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import grpc
import psycopg
import pytest

from harness import LONG
from faults.proxy import Proxy
from harness.broker import PAYLOAD_MARK
from harness.calls import CALLER, Failed, Stream, ack, enqueue, eventually, extend, failure, job, nack, status_name
from harness.stubs import pb


@pytest.fixture
def served(postgres, brokers):
    """A broker on a fresh PostgreSQL database, and the database."""
    return brokers(postgres.url, name="broker"), postgres


def use_everything(stub, caller):
    """Calls of every kind for one caller."""
    metadata = (("leasehold-caller", caller),) if caller else ()
    enqueue(stub, *[job(f"all-{caller or 'none'}", at.to_bytes(2, "big"), idempotency_key=f"{caller}-{at}",
                        ordering_key=f"k{at % 3}") for at in range(12)],
            *[job(f"all-{caller or 'none'}", b"plain", max_attempts=2) for _ in range(6)], metadata=metadata)
    stream = Stream(stub, f"all-{caller or 'none'}", in_flight=9, lease=1, metadata=metadata)
    held = stream.jobs(9)
    extend(stub, held[0].lease_token, held[1].lease_token, metadata=metadata)
    nack(stub, held[0].lease_token, delay=0, metadata=metadata)
    nack(stub, held[1].lease_token, action="RELEASE", metadata=metadata)
    nack(stub, held[2].lease_token, action="REJECT", metadata=metadata)
    ack(stub, *[one.lease_token for one in held[3:6]], metadata=metadata)
    stream.jobs(3, within=6)  # the rest runs out
    stream.cancel()


def test_every_statement_begins_with_its_caller(served):
    broker, database = served
    stub = broker.stub()
    callers = ["checkout_completion", "email.delivery", "search-indexing"]
    with ThreadPoolExecutor() as threads:
        list(threads.map(lambda caller: use_everything(stub, caller), [*callers, None]))
    second = broker.__class__(broker.program, broker.work, database.url, "broker-b", {}, migrate=False).start()
    stream = Stream(second.stub(), "all-other", metadata=())
    enqueue(stub, job("all-other"), metadata=())
    stream.jobs(1, within=5)
    works = {"leasehold.reaper", "leasehold.dispatcher", "leasehold.listener", "leasehold.migrate"}
    eventually(lambda: works <= {entry.caller for entry in database.statements()}, what="every work of the broker's own")
    second.terminate()
    assert second.process.wait(25) == 0
    sent = database.statements()
    untagged = [entry.statement[:200] for entry in sent if entry.caller is None]
    assert not untagged, f"{len(untagged)} of {len(sent)}: {untagged[:5]}"
    assert len(sent) > 100
    seen = {entry.caller for entry in sent}
    assert {*callers, "unattributed"} <= seen
    others = seen - {*callers, "unattributed"}
    assert all(caller.startswith("leasehold.") for caller in others), others
    listening = [entry for entry in sent if "listen " in entry.statement.lower()]
    assert listening and all(entry.caller.startswith("leasehold.") for entry in listening)
    assert not second.faults_in_output()
    second.end()


def test_no_payload_reaches_a_log_and_errors_are_no_sql(served):
    broker, database = served
    stub = broker.stub()
    enqueue(stub, job("marked", PAYLOAD_MARK.encode(), headers={"k": PAYLOAD_MARK}, max_attempts=1))
    with database.connect() as session:
        session.execute("alter table leasehold.job add constraint refused check (payload <> 'refuse') not valid")
    said = failure(stub.Enqueue, pb.EnqueueRequest(jobs=[job("marked", b"refuse")]), timeout=10, metadata=CALLER)
    assert said.outcome == "not-applied"
    assert not any(word in said.message.lower() for word in ("insert", "select", "leasehold.job", "constraint \"")), said
    nack(stub, Stream(stub, "marked").jobs(1)[0].lease_token, error=PAYLOAD_MARK)
    eventually(lambda: database.one("select count(*) from leasehold.dead_job") == 1, what="the dead job")


def test_a_request_that_the_database_refuses_fails_alone_among_a_hundred(served):
    broker, database = served
    stub = broker.stub()
    enqueue(stub, job("merged", b"first"))
    with database.connect() as session:
        session.execute("alter table leasehold.job add constraint refused check (payload <> 'refuse') not valid")
    for _ in range(3):
        before = database.one("select count(*) from leasehold.job")
        payloads = [b"refuse" if at == 50 else b"fine-%d" % at for at in range(100)]
        calls = [stub.Enqueue.future(pb.EnqueueRequest(jobs=[job("merged", payload)]), timeout=20, metadata=CALLER)
                 for payload in payloads]
        for payload, call in zip(payloads, calls):
            if payload == b"refuse":
                try:
                    call.result()
                    raise AssertionError("the refused one was accepted")
                except grpc.RpcError as error:
                    said = Failed(error)
                assert (said.code, said.outcome) == ("INVALID_ARGUMENT", "not-applied"), said
            else:
                assert call.result().jobs[0].job_id
        assert database.one("select count(*) from leasehold.job") == before + 99


def test_a_job_held_by_a_services_transaction_is_busy_and_delays_nobody(served):
    broker, database = served
    stub = broker.stub()
    enqueue(stub, *[job("held", at.to_bytes(2, "big")) for at in range(60)])
    leased = Stream(stub, "held", in_flight=60, lease=60).jobs(60)
    waits = []
    with database.connect(autocommit=False) as session:
        assert session.execute("select leasehold.ack(%s)", [leased[0].lease_token]).fetchone() == (True,)
        busy = stub.Ack.future(pb.AckRequest(lease_tokens=[leased[0].lease_token, leased[1].lease_token]), timeout=10,
                               metadata=CALLER)
        for one in leased[2:50]:
            begun = time.monotonic()
            assert ack(stub, one.lease_token) == ["OK"]
            waits.append(time.monotonic() - begun)
        begun = time.monotonic()
        assert [status_name(result.status) for result in busy.result().results] == ["BUSY", "OK"]
        assert time.monotonic() - begun < 2.5
        for call in (lambda: status_name(nack(stub, leased[0].lease_token)[0].status),
                     lambda: status_name(extend(stub, leased[0].lease_token)[0].status)):
            begun = time.monotonic()
            assert call() == "BUSY"
            assert time.monotonic() - begun < 2.5
        session.rollback()
    assert max(waits) < 0.5, max(waits)
    assert ack(stub, leased[0].lease_token) == ["OK"]


def test_an_ack_in_a_services_transaction_is_both_or_neither(served):
    broker, database = served
    stub = broker.stub()
    with database.connect() as session:
        session.execute("create table effect(job text primary key)")
    enqueue(stub, job("effect", b"1"), job("effect", b"2"))
    one, two = Stream(stub, "effect", lease=30).jobs(2)
    with database.connect(autocommit=False) as session:
        session.execute("select leasehold.ack_or_fail(%s)", [one.lease_token])
        session.execute("insert into effect values (%s)", [one.job_id])
    with database.connect(autocommit=False) as session:
        session.execute("select leasehold.ack_or_fail(%s)", [two.lease_token])
        session.execute("insert into effect values (%s)", [two.job_id])
        session.rollback()
    assert ack(stub, one.lease_token) == ["GONE"]
    assert database.one("select count(*) from effect") == 1
    with database.connect(autocommit=False) as session, pytest.raises(psycopg.Error):
        session.execute("select leasehold.ack_or_fail(%s)", [one.lease_token])
    assert ack(stub, two.lease_token) == ["OK"]


@pytest.mark.timeout(240)
def test_a_storm_of_cancelled_calls_leaves_no_transaction_and_no_half_batch(served):
    """Failure cases 9 and 17: a thousand calls dropped at random points."""
    broker, database = served
    stub = broker.stub()
    dice = random.Random(17)
    enqueue(stub, job("storm", b"warm"))
    idle, stop = [], threading.Event()

    def watch():
        with database.connect() as session:
            while not stop.is_set():
                idle.extend(session.execute(
                    """select pid from pg_stat_activity where datname = current_database() and application_name <> 'test'
                       and state like 'idle in transaction%' and clock_timestamp() - state_change > interval '1 s'""").fetchall())
                time.sleep(0.05)

    watcher = threading.Thread(target=watch)
    watcher.start()
    known_ok, cancelled = [], []
    counts = 5000 if LONG else 1000
    number, give_up = 0, time.monotonic() + 150
    while len(cancelled) < counts and time.monotonic() < give_up:
        calls = []
        for _ in range(20):
            number += 1
            jobs = [job("storm", b"%d" % number) for _ in range(5)]
            call = stub.Enqueue.future(pb.EnqueueRequest(jobs=jobs), timeout=20, metadata=CALLER)
            # Some at once, so that they end on their way; the others once the broker has them.
            if dice.random() < 0.3 and call.cancel():
                cancelled.append(number)
            else:
                calls.append((number, call))
        # And one that is dropped before all of it has gone out.
        number += 1
        large = pb.EnqueueRequest(jobs=[job("storm", (b"%d" % number).ljust(500_000)) for _ in range(5)])
        if stub.Enqueue.future(large, timeout=20, metadata=CALLER).cancel():
            cancelled.append(number)
        time.sleep(dice.random() * 0.004)
        for called, call in calls:
            if dice.random() < 0.7 and call.cancel():
                cancelled.append(called)
            elif call.exception() is None:
                known_ok.append(called)
    for _ in range(200):
        enqueue(stub, job("after"))
    stop.set()
    watcher.join()
    assert not idle, "a session stayed idle in a transaction"
    assert len(cancelled) >= counts, "the storm cancelled too little to prove anything"
    batches = dict(database.all("select rtrim(convert_from(payload, 'UTF8')), count(*) from leasehold.job j join leasehold.queue q"
                                " on q.id = j.queue_id where q.name = 'storm' and payload <> 'warm' group by 1"))
    assert set(batches.values()) <= {5}, "a batch was stored by half"
    missing = [number for number in known_ok if str(number) not in batches]
    assert not missing, "calls answered OK are not there"
    stored = sum(str(called) in batches for called in cancelled)
    assert 0 < stored < len(cancelled), "all calls were dropped at one and the same point"
    errors = [entry.text for entry in database.log_entries() if entry.level in ("ERROR", "FATAL", "PANIC")]
    assert not [text for text in errors if "already a transaction" in text or "transaction is aborted" in text], errors
    assert not [entry for entry in database.log_entries() if "there is already a transaction" in entry.text]


@pytest.mark.timeout(240)
def test_calls_with_short_deadlines_before_a_slow_database_say_truly_what_happened(postgres, brokers):
    """Failure case 17: 300 ms to the database, deadlines from 10 to 900 ms."""
    url = urlsplit(postgres.url)
    proxy = Proxy((url.hostname, url.port), postgres=True)
    broker = brokers(postgres.url.replace(f":{url.port}/", f":{proxy.port}/"), lanes_count=3)
    stub = broker.stub()
    enqueue(stub, job("slow", b"warm"))
    proxy.order(delay=0.15)
    dice = random.Random(3)
    calls = []
    for number in range(200):
        request = pb.EnqueueRequest(jobs=[job("slow", b"%d" % number)])
        calls.append((number, stub.Enqueue.future(request, timeout=dice.uniform(0.01, 0.9), metadata=CALLER)))
        if number % 20 == 0:
            time.sleep(0.1)
    fates = {}
    for number, call in calls:
        error = call.exception()
        fates[number] = "ok" if error is None else Failed(error).outcome or "unheard"
    proxy.heal()
    for _ in range(100):
        enqueue(stub, job("after"))
    stored = {text for (text,) in postgres.all("select convert_from(payload, 'UTF8') from leasehold.job")}
    for number, fate in fates.items():
        if fate == "ok":
            assert str(number) in stored, "OK and not there"
        elif fate == "not-applied":
            assert str(number) not in stored, "not-applied and there"
    assert not [s for s in postgres.sessions() if s[1] and s[1].startswith("idle in transaction")]
    proxy.close()
