"""Why a job is not running, and who works on what: on one replica and across two."""

import pytest

from harness.calls import Stream, ack, enqueue, eventually, failure, job, nack
from harness.operators import cancel, consumers, explain, state, job_of, update


def test_a_ready_job_says_who_is_missing(stub, admin):
    [stored] = enqueue(stub, job("alone"))
    waits = explain(admin, stored)
    assert list(waits) == ["NO_CONSUMER"] and "start a consumer" in waits["NO_CONSUMER"].explanation
    assert failure(explain, admin, "999999999").reason == "NOT_FOUND"


def test_a_scheduled_job_says_until_when_and_a_retry_why(stub, admin):
    [stored] = enqueue(stub, job("later", delay=3600))
    wait = explain(admin, stored)["SCHEDULED"]
    assert wait.until.ToMicroseconds() == job_of(admin, stored).ready_at.ToMicroseconds()
    [retried] = enqueue(stub, job("later"))
    stream = Stream(stub, "later")
    nack(stub, stream.jobs(1)[0].lease_token, delay=3600, error="card declined")
    waits = explain(admin, retried)
    assert list(waits) == ["SCHEDULED"] and "card declined" in waits["SCHEDULED"].explanation


def test_a_leased_job_says_by_whom_and_a_blocked_one_behind_what(stub, admin):
    first, second, third = enqueue(stub, *[job("keyed", ordering_key="k") for _ in range(3)])
    stream = Stream(stub, "keyed", consumer="pod-7", lease=60)
    leased = stream.jobs(1)[0]
    wait = explain(admin, first)["LEASED"]
    assert wait.consumer == "pod-7"
    assert wait.until.ToMicroseconds() == leased.lease_expires_at.ToMicroseconds()
    wait = explain(admin, third)["BLOCKED"]
    assert (wait.blocking_job_id, wait.ahead.value, state(job_of(admin, second))) == (first, 2, "BLOCKED")


def test_a_paused_queue_and_consumers_without_credit(stub, admin):
    stored = enqueue(stub, *[job("busy", at) for at in (b"1", b"2", b"3")])
    stream = Stream(stub, "busy", in_flight=1, lease=60)
    stream.jobs(1)
    waits = eventually(lambda: "NO_CREDIT" in (found := explain(admin, stored[2])) and found, what="no credit")
    assert list(waits) == ["NO_CREDIT", "BEHIND_OTHERS"] and waits["BEHIND_OTHERS"].ahead.value == 1
    update(admin, "busy", paused=True)
    assert list(explain(admin, stored[2])) == ["QUEUE_PAUSED", "NO_CREDIT", "BEHIND_OTHERS"]
    update(admin, "busy", paused=False)
    assert list(explain(admin, stored[1])) == ["NO_CREDIT"]


def test_consumers_are_listed_with_what_they_hold(stub, admin):
    enqueue(stub, *[job("listed-a") for _ in range(2)])
    first = Stream(stub, "listed-a", "listed-b", consumer="one", in_flight=5, lease=60)
    second = Stream(stub, "listed-b", consumer="two", in_flight=3)
    first.jobs(2)
    second.expect("opened")

    def shown(queue):
        return {one.consumer: one for one in consumers(admin, queue, page_size=1)}

    both = eventually(lambda: len(found := shown("listed-b")) == 2 and found, what="both")
    found = eventually(lambda: (one := shown("listed-a")["one"]).in_flight == 2 and one, what="two leases")
    assert list(shown("listed-a")) == ["one"]
    assert (list(found.queues), found.max_in_flight, found.caller) == (["listed-a", "listed-b"], 5, "wire_tests")
    assert found.peer.startswith("127.0.0.1:") and found.replica and found.HasField("oldest_lease_age")
    assert (both["two"].in_flight, both["two"].HasField("oldest_lease_age")) == (0, False)
    first.cancel()
    eventually(lambda: "one" not in shown("listed-b"), what="the end of the first")
    assert failure(consumers, admin, "Bad").fields == ["queue"]


@pytest.fixture
def pair(postgres, brokers):
    """Two ready brokers on a fresh database that write themselves down every second."""
    return [brokers(postgres.url, name=name, upkeep_presence_interval="1s") for name in ("replica", "replica-2")]


def test_what_one_replica_has_the_other_one_explains(pair):
    (first, second), (one, other) = [broker.stub() for broker in pair], [broker.admin() for broker in pair]
    stored = enqueue(first, *[job("across") for _ in range(2)])
    stream = Stream(first, "across", consumer="pod-1", in_flight=1, lease=60)
    opened, leased = stream.expect("opened"), stream.jobs(1)[0]
    wait = eventually(lambda: (found := explain(other, stored[0])["LEASED"]).consumer and found, what="who holds it")
    assert wait.consumer == "pod-1"
    assert wait.until.ToMicroseconds() == leased.lease_expires_at.ToMicroseconds()
    eventually(lambda: list(explain(other, stored[1])) == ["NO_CREDIT"], what="no credit")
    [seen] = eventually(lambda: consumers(other, "across"), what="the stream")
    assert (seen.replica, seen.consumer, seen.in_flight) == ("replica", "pod-1", 1)
    assert seen.stream_id == opened.stream_id
    # More credit elsewhere, and the replica that is asked knows of its own at once.
    elsewhere = Stream(second, "across", consumer="pod-2", in_flight=2, lease=60)
    elsewhere.jobs(1)
    assert explain(other, stored[1])["LEASED"].consumer == "pod-2"
    assert cancel(one, stored[1]) == ["REQUESTED"]
    assert elsewhere.expect("revoked", within=5).leases[0].cancel_requested


def test_nothing_keeps_a_job_whose_consumer_is_about_to_take_it(pair):
    (first, second), other = pair, pair[1].admin()
    Stream(first.stub(), "nothing", consumer="slow").expect("opened")
    eventually(lambda: consumers(other, "nothing"), what="the stream")
    first.pause()
    [stored] = enqueue(second.stub(), job("nothing"))
    assert list(explain(other, stored)) == ["NONE"]
    first.resume()
    eventually(lambda: list(explain(other, stored)) == ["LEASED"], what="the lease")


def test_a_replica_that_drains_is_gone_at_once_and_one_that_is_killed_after_a_while(brokers, postgres):
    settings = {"upkeep_presence_interval": "1s", "upkeep_presence_absent": "3s"}
    stays, drains, dies = [brokers(postgres.url, name=name, **settings) for name in ("stays", "drains", "dies")]
    for broker in (drains, dies):
        Stream(broker.stub(), "gone", consumer=broker.name).expect("opened")
    admin = stays.admin()
    names = lambda: {one.consumer for one in consumers(admin, "gone")}  # noqa: E731
    eventually(lambda: names() == {"drains", "dies"}, what="both")
    drains.terminate()
    assert drains.process.wait(20) == 0
    assert names() == {"dies"}, "it took itself out"
    assert postgres.one("select count(*) from leasehold.replica where name = 'drains'") == 0
    dies.kill()
    eventually(lambda: names() == set(), what="the other one's end")
    eventually(lambda: postgres.one("select count(*) from leasehold.replica") == 1, what="its rows are gone")


def test_a_job_by_sql_waits_for_its_adoption_and_a_held_one_for_its_holder(postgres, brokers):
    broker = brokers(postgres.url, upkeep_arrivals_interval="60s")
    admin, stub = broker.admin(), broker.stub()
    enqueue(stub, job("sql"))
    stored = str(postgres.one("select leasehold.enqueue('sql', %s)", b"x"))
    waits = explain(admin, stored)
    assert list(waits)[0] == "ADOPTION" and waits["ADOPTION"].until.seconds == 0
    [held] = enqueue(stub, job("held"))
    with postgres.connect(autocommit=False) as session:
        session.execute("select id from leasehold.job where id = %s for update", [int(held)])
        assert list(explain(admin, held)) == ["HELD", "NO_CONSUMER"]
        assert cancel(admin, held) == ["BUSY"]
    assert list(explain(admin, held)) == ["NO_CONSUMER"]
    assert cancel(admin, held) == ["CANCELLED"]


def test_all_goes_on_while_the_database_is_away(cluster, brokers):
    broker = brokers(cluster.url(), upkeep_presence_interval="1s")
    stub, admin = broker.stub(), broker.admin()
    stream = Stream(stub, "away", consumer="stays")
    stream.expect("opened")
    eventually(lambda: consumers(admin, "away"), what="the stream")
    cluster.stop("immediate")
    said = eventually(lambda: unavailable(admin), what="an outage")
    assert (said.code, said.outcome) == ("UNAVAILABLE", "not-applied")
    cluster.start()
    eventually(lambda: answers(admin), within=20, what="the database")
    assert [one.consumer for one in consumers(admin, "away")] == ["stays"]
    enqueue(stub, job("away"))
    ack(stub, stream.jobs(1)[0].lease_token)


def unavailable(admin):
    """What a call says that fails; nothing where it does not."""
    try:
        return failure(consumers, admin, "away")
    except AssertionError:
        return None


def answers(admin):
    """Whether a call goes through."""
    return unavailable(admin) is None
