"""Faults under load: after each, the history keeps the promises.

The counts are small here; `./test --long` takes larger ones.
"""

import sqlite3
import time
from urllib.parse import urlsplit

import pytest

from faults.proxy import Proxy
from faults.run import Run
from harness import LONG
from harness.calls import Stream, ack, enqueue, eventually, extend, failure, job, nack, status_name
from harness.stubs import pb

JOBS = 20_000 if LONG else 2_000
pytestmark = pytest.mark.timeout(600 if LONG else 180)


@pytest.fixture
def pair(postgres, brokers):
    """Two brokers on a fresh database of the shared server."""
    return brokers(postgres.url, name="replica-a"), brokers(postgres.url, name="replica-b")


@pytest.fixture
def linked(postgres, brokers):
    """A broker that reaches its database through a proxy, and the proxy."""
    url = urlsplit(postgres.url)
    proxy = Proxy((url.hostname, url.port), postgres=True)
    yield brokers(postgres.url.replace(f":{url.port}/", f":{proxy.port}/"), name="replica"), proxy
    proxy.close()


def test_kill_9_of_a_broker_under_load(postgres, brokers, work):
    broker = brokers(postgres.url)
    with Run(work / "history", postgres.url, [broker.port], jobs=JOBS) as run:
        for _ in range(3):
            run.after_grants(run.grants() + JOBS // 20)
            with run.fault("kill -9 broker"):
                broker.kill()
                broker.start()
        report = run.verdict()
    assert report.valid is True, report.table()


def test_kill_9_of_one_of_two_brokers_under_load(pair, postgres, work):
    first, second = pair
    with Run(work / "history", postgres.url, [first.port, second.port], jobs=JOBS) as run:
        run.after_grants(JOBS // 4)
        with run.fault("kill -9 replica"):
            first.kill()
            run.after_grants(JOBS // 2)
        report = run.verdict()
    assert report.valid is True, report.table()


def test_kill_9_of_postgres_under_load(cluster, brokers, work):
    broker = brokers(cluster.url())
    with Run(work / "history", cluster.url(), [broker.port], jobs=JOBS) as run:
        for _ in range(2):
            run.after_grants(run.grants() + JOBS // 20)
            with run.fault("kill -9 postgres"):
                cluster.kill()
                cluster.start()
            back = time.monotonic()
            eventually(broker.is_ready, within=10, what="readiness after the outage")
            assert time.monotonic() - back < 10
        report = run.verdict()
    assert report.valid is True, report.table()


def test_immediate_restart_of_postgres_under_load(cluster, brokers, work):
    broker = brokers(cluster.url())
    with Run(work / "history", cluster.url(), [broker.port], jobs=JOBS // 2) as run:
        run.after_grants(JOBS // 20)
        with run.fault("immediate restart"):
            cluster.stop("immediate")
            cluster.start()
        report = run.verdict()
    assert report.valid is True, report.table()


def test_sigterm_of_each_replica_in_turn_under_load(pair, postgres, work):
    with Run(work / "history", postgres.url, [broker.port for broker in pair], jobs=JOBS) as run:
        for broker in pair:
            run.after_grants(run.grants() + JOBS // 10)
            with run.fault("SIGTERM"):
                broker.terminate()
                assert broker.process.wait(25) == 0
                broker.start()
        report = run.verdict()
    assert report.valid is True, report.table()


def test_a_database_that_stops_and_keeps_its_sockets(cluster, brokers, work):
    broker = brokers(cluster.url())
    with Run(work / "history", cluster.url(), [broker.port], jobs=JOBS // 2, deadline=3.0) as run:
        run.after_grants(JOBS // 20)
        with run.fault("SIGSTOP postgres"):
            cluster.pause()
            said = failure(broker.stub().Enqueue, pb.EnqueueRequest(jobs=[job("other")]), timeout=1.5)
            assert said.code in ("DEADLINE_EXCEEDED", "UNAVAILABLE"), said
            cluster.resume()
        report = run.verdict()
    assert report.valid is True, report.table()


def test_a_broker_that_stops_and_goes_on_is_fenced(pair, postgres, work):
    first, second = pair
    with Run(work / "history", postgres.url, [first.port, second.port], jobs=JOBS) as run:
        run.after_grants(JOBS // 10)
        with run.fault("SIGSTOP replica"):
            first.pause()
            eventually(lambda: run.grants() > JOBS // 2, within=20, what="the other replica's work")
            first.resume()
        report = run.verdict()
    assert report.valid is True, report.table()


@pytest.mark.parametrize("link", [dict(drop_up=True, drop_down=True), dict(drop_up=True), dict(drop_down=True)],
                         ids=["black hole", "half open to the database", "half open from the database"])
def test_a_link_that_swallows_what_is_sent(linked, postgres, work, link):
    broker, proxy = linked
    with Run(work / "history", postgres.url, [broker.port], jobs=JOBS // 4, deadline=3.0) as run:
        run.after_grants(JOBS // 40)
        with run.fault("black hole"):
            proxy.order(**link)
            # Statements in flight run into their time; the broker notices by itself and says so.
            eventually(lambda: not broker.is_ready(), within=40, what="unreadiness")
            proxy.heal()
        eventually(broker.is_ready, within=15, what="readiness after the heal")
        report = run.verdict()
    assert report.valid is True, report.table()


def test_resets_of_every_database_connection_under_load(linked, postgres, work):
    broker, proxy = linked
    with Run(work / "history", postgres.url, [broker.port], jobs=JOBS) as run:
        for _ in range(5):
            run.after_grants(run.grants() + JOBS // 20)
            with run.fault("reset"):
                proxy.reset()
        report = run.verdict()
    assert report.valid is True, report.table()


def test_delay_and_jitter_to_the_database(linked, postgres, work):
    broker, proxy = linked
    with Run(work / "history", postgres.url, [broker.port], jobs=JOBS // 4) as run:
        with run.fault("delay"):
            proxy.order(delay=0.05, jitter=0.05)
            run.after_grants(JOBS // 8, within=60)
            proxy.heal()
        report = run.verdict()
    assert report.valid is True, report.table()


def test_terminated_backends_under_load(postgres, brokers, work):
    broker = brokers(postgres.url, name="victim")
    with Run(work / "history", postgres.url, [broker.port], jobs=JOBS) as run:
        for _ in range(5):
            run.after_grants(run.grants() + JOBS // 20)
            with run.fault("pg_terminate_backend"):
                postgres.all("select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database()"
                             " and pid <> pg_backend_pid() and application_name <> 'test'")
        report = run.verdict()
    assert report.valid is True, report.table()


# --- failure case 14: an answer that got lost, per call and per cut -----------------------------------------------------

CUTS = [("before", False), ("after", True), ("half", True)]


@pytest.mark.parametrize(("at", "applied"), CUTS)
def test_a_cut_around_an_enqueue_says_the_truth_and_its_repetition_makes_one_job(linked, postgres, at, applied):
    broker, proxy = linked
    stub = broker.stub()
    for kind, fields in (("plain", {}), ("keyed", {"idempotency_key": "k", "ordering_key": "o"})):
        request = pb.EnqueueRequest(jobs=[job(f"cut-{kind}", b"%d" % n, **{k: f"{v}{n}" for k, v in fields.items()})
                                          for n in range(3)])
        enqueue(stub, job(f"cut-{kind}", b"warm"))
        count = ("select count(*) from leasehold.job j join leasehold.queue q on q.id = j.queue_id where q.name = %s"
                 " and payload <> 'warm'")
        cut = proxy.cut("conn_tag:wire_tests", at)
        said = failure(stub.Enqueue, request, timeout=10, metadata=(("leasehold-caller", "wire_tests"),))
        assert cut.hits == 1
        stored = postgres.one(count, f"cut-{kind}")
        assert stored == (3 if applied else 0)
        # A cut before the statement looks to the broker like one after it: sent, no answer.
        assert (said.outcome, said.reason) == ("unknown", "OUTCOME_UNKNOWN"), said
        proxy.disarm()
        if fields:
            first = enqueue(stub, *request.jobs)
            assert enqueue(stub, *request.jobs) == first
            assert postgres.one(count, f"cut-{kind}") == 3


@pytest.mark.parametrize(("at", "applied"), CUTS)
def test_a_cut_around_a_settlement_says_the_truth_and_its_repetition_changes_nothing_more(linked, postgres, at, applied):
    broker, proxy = linked
    stub = broker.stub()
    mine = (("leasehold-caller", "settler"),)
    enqueue(stub, *[job("settle", b"%d" % n, max_attempts=5) for n in range(3)])
    stream = Stream(stub, "settle", in_flight=3, lease=60)
    one, two, three = stream.jobs(3)

    def cut_call(call):
        cut = proxy.cut("conn_tag:settler", at)
        said = call()
        assert cut.hits == 1
        assert said.outcome == "unknown", said
        proxy.disarm()

    def settle(name, request):
        return lambda: failure(getattr(stub, name), request, timeout=10, metadata=mine)

    cut_call(settle("Ack", pb.AckRequest(lease_tokens=[one.lease_token])))
    assert (postgres.one("select count(*) from leasehold.job where id = %s", int(one.job_id)) == 0) is applied
    assert ack(stub, one.lease_token) == [("GONE" if applied else "OK")]
    assert ack(stub, one.lease_token) == ["GONE"]

    cut_call(settle("Nack", pb.NackRequest(items=[pb.NackItem(lease_token=two.lease_token, error="x")])))
    again = status_name(nack(stub, two.lease_token, delay=0)[0].status)
    assert again == ("LEASE_LOST" if applied else "OK")
    assert stream.jobs(1, within=20)[0].attempt == 2, "a nack repeated after an unknown one counted twice"

    cut_call(settle("Extend", pb.ExtendRequest(lease_tokens=[three.lease_token])))
    assert status_name(extend(stub, three.lease_token)[0].status) == "OK"
    assert ack(stub, three.lease_token) == ["OK"]


@pytest.mark.parametrize("at", ["before", "after", "half"])
def test_a_claim_whose_answer_was_lost_is_given_back_at_once_without_an_attempt(linked, postgres, at):
    broker, proxy = linked
    stub = broker.stub()
    enqueue(stub, job("claimed", b"warm"))
    mine = (("leasehold-caller", "claimer"),)
    stream = Stream(stub, "claimed", in_flight=10, lease=30, metadata=mine)
    ack(stub, stream.jobs(1)[0].lease_token)
    cut = proxy.cut("conn_tag:claimer", at)
    enqueue(stub, *[job("claimed", b"%d" % n) for n in range(5)])
    got = stream.jobs(5, within=15)
    assert cut.hits == 1
    assert {one.attempt for one in got} == {1}
    assert ack(stub, *[one.lease_token for one in got]) == ["OK"] * 5


# --- failure case 47 ---------------------------------------------------------------------------------------------------

@pytest.mark.timeout(2400 if LONG else 180)
def test_wake_ups_lost_with_their_listener_cost_the_polling_interval_at_most(pair, postgres):
    first, second = pair
    stub = first.stub()
    stream = Stream(second.stub(), "wake", in_flight=100)
    stream.expect("opened")
    enqueue(stub, job("wake"))
    stream.jobs(1)
    waits = []
    for number in range(1000 if LONG else 20):
        kill = ("select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database()"
                " and query like '%%leasehold.listener%%' and pid <> pg_backend_pid()")
        if number % 2:
            postgres.all(kill)
        begun = time.monotonic()
        enqueue(stub, job("wake"))
        if not number % 2:
            postgres.all(kill)
        leased = stream.jobs(1, within=5)[0]
        waits.append(time.monotonic() - begun)
        ack(stub, leased.lease_token)
    assert max(waits) < 2.0, waits


# --- failure case 10 ---------------------------------------------------------------------------------------------------

def test_a_client_that_vanished_loses_its_stream_and_holds_no_more_than_its_credit(postgres, brokers):
    broker = brokers(postgres.url, server_keepalive_interval="2s", server_keepalive_timeout="1s")
    proxy = Proxy(("127.0.0.1", broker.port))
    gone = Stream(broker.stub(port=proxy.port), "vanished", in_flight=5, lease=3)
    gone.expect("opened")
    before = broker.connections()
    proxy.order(drop_up=True, drop_down=True)
    healthy = Stream(broker.stub(), "vanished", in_flight=50, lease=30)
    healthy.expect("opened")
    enqueue(broker.stub(), *[job("vanished", b"%d" % n) for n in range(20)])
    got = healthy.jobs(20, within=15)
    assert len({one.payload for one in got}) == 20
    assert sum(one.attempt > 1 for one in got) <= 5
    eventually(lambda: broker.connections() <= before + 2, within=10, what="the end of the dead connection")
    proxy.close()


# --- SQLite -----------------------------------------------------------------------------------------------------------

def test_kill_9_of_a_broker_on_its_embedded_database_loses_nothing(brokers, work):
    broker = brokers(None, name="embedded")
    ids = []
    for _ in range(3):
        stub = broker.stub()
        for number in range(30):
            ids += enqueue(stub, *[job("embedded", b"%d" % number) for _ in range(10)])
        broker.hang_up()
        broker.kill()
        broker.start()
    stream = Stream(broker.stub(), "embedded", in_flight=1000, lease=60)
    got = {one.job_id for one in stream.jobs(len(ids), within=30)}
    assert got == set(ids)
    broker.hang_up()
    broker.terminate()
    assert broker.process.wait(25) == 0
    [file] = list((work / "embedded-data").glob("*.db"))
    with sqlite3.connect(file) as session:
        assert session.execute("pragma integrity_check").fetchone() == ("ok",)


def test_a_second_broker_on_the_same_embedded_database_is_refused_clearly(brokers, work):
    first = brokers(None, name="embedded")
    second = first.__class__(first.program, work, None, "embedded", {})
    second.log = work / "second.log"
    second.start(wait=False)
    assert second.process.wait(15) != 0
    assert "in use" in second.output() or "another" in second.output(), second.output()
    assert enqueue(first.stub(), job("still"))
