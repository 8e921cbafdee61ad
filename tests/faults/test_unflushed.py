"""Claims that do not wait for the disk: what a crash of the database undoes, and what it does not."""

import pytest

from faults.run import Run
from harness import LONG
from harness.calls import Stream, ack, enqueue, eventually, job

JOBS = 20_000 if LONG else 2_000
pytestmark = pytest.mark.timeout(600 if LONG else 180)


@pytest.fixture
def lazy(cluster):
    """A server that writes what nobody waits for as late as it can."""
    with cluster.connect() as session:
        session.execute("alter system set wal_writer_delay = '10s'")
        session.execute("alter system set wal_writer_flush_after = '1GB'")
        session.execute("select pg_reload_conf()")
    return cluster


def crash(cluster):
    cluster.kill()
    cluster.start()


def test_a_claim_that_a_crash_undid_is_made_again_and_its_first_token_decides_nothing(lazy, brokers):
    broker = brokers(lazy.url(), lanes_unflushed_claims="true")
    stub = broker.stub()
    stream = Stream(stub, "lazy", in_flight=10, lease=60)
    for number in range(10):
        enqueue(stub, job("lazy", b"%d" % number))
        first = stream.jobs(1)[0]
        crash(lazy)
        eventually(broker.is_ready, within=20, what="readiness after the crash")
        if ack(stub, first.lease_token) == ["OK"]:
            continue  # something else was committed right behind the claim, and took it to the disk
        again = stream.jobs(1, within=30)[0]
        assert (again.job_id, again.payload) == (first.job_id, first.payload)
        assert again.lease_token != first.lease_token
        assert again.lease_number == first.lease_number, "the page on the option says that it is the same"
        assert ack(stub, first.lease_token) == ["LEASE_LOST"]
        assert ack(stub, again.lease_token) == ["OK"]
        return
    raise AssertionError("no crash undid a claim: the option does nothing")


def test_what_comes_after_such_a_claim_waits_for_the_disk(lazy, brokers):
    broker = brokers(lazy.url(), lanes_unflushed_claims="true", lanes_count="3")
    stub = broker.stub()
    stream = Stream(stub, "lazy", in_flight=100, lease=60)
    expected = set()
    for count in (20, 21):  # the last thing before the crash is an Ack, then an Enqueue
        for number in range(count):
            expected.add(enqueue(stub, job("lazy", b"%d" % number))[0])
            leased = stream.jobs(1)[0]
            if number % 2:
                assert ack(stub, leased.lease_token) == ["OK"]
                expected.discard(leased.job_id)
        crash(lazy)
        eventually(broker.is_ready, within=20, what="readiness after the crash")
        with lazy.connect() as session:
            kept = {str(number) for number, in session.execute("select id from leasehold.job")}
        assert kept == expected


def test_kill_9_of_postgres_under_load_with_such_claims(cluster, brokers, work):
    broker = brokers(cluster.url(), lanes_unflushed_claims="true")
    with Run(work / "history", cluster.url(), [broker.port], jobs=JOBS) as run:
        for _ in range(3):
            run.after_grants(run.grants() + JOBS // 20)
            with run.fault("kill -9 postgres"):
                crash(cluster)
            eventually(broker.is_ready, within=30, what="readiness after the crash")
        report = run.verdict(undone=True)
    assert report.valid is True, report.table()
