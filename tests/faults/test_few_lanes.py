"""Failure case 19, on every server: more askers than lanes, idle streams, and a database that is slow for everybody."""

import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import grpc
import pytest

from conftest import fresh_database, fresh_mariadb
from faults.proxy import Proxy
from harness import LONG
from harness.calls import CALLER, Failed, Stream, ack, enqueue, eventually, job
from harness.mariadb import OWN_ROLE
from harness.stubs import pb

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(params=["postgres", "mariadb"])
def linked(request, server, brokers):
    """A broker of three lanes that reaches its database through a proxy, the proxy, and the database."""
    with fresh_database(server) if request.param == "postgres" else fresh_mariadb() as database:
        url = urlsplit(database.url)
        proxy = Proxy((url.hostname, url.port))
        broker = brokers(database.url.replace(f":{url.port}/", f":{proxy.port}/"), lanes_count=3)
        yield broker, proxy, database
        broker.end()
        proxy.close()


def one(queue, payload=b"x"):
    """A request with one job."""
    return pb.EnqueueRequest(jobs=[job(queue, payload)])


def in_use(database):
    """Connections of the broker that the server does something for just now."""
    if hasattr(database, "all"):
        return database.one("select count(*) from pg_stat_activity where datname = current_database() and state <> 'idle'"
                            " and pid <> pg_backend_pid() and backend_type = 'client backend'")
    return database.one("select count(*) from information_schema.processlist where db = database() and command <> 'Sleep'"
                        f" and user <> '{OWN_ROLE}'")


def test_sixty_askers_on_three_lanes_are_all_answered(linked):
    broker, _, _ = linked
    stub = broker.stub()
    enqueue(stub, job("many", b"first"))
    stream = Stream(stub, "many", in_flight=100)
    ack(stub, stream.jobs(1)[0].lease_token)

    def ask(number):
        return enqueue(stub, job("many", b"%d" % number))

    with ThreadPoolExecutor(60) as askers:
        stored = [ids[0] for ids in askers.map(ask, range(60))]
        leased = stream.jobs(60, within=20)
        assert {one_.job_id for one_ in leased} == set(stored)
        assert set(askers.map(lambda one_: ack(stub, one_.lease_token)[0], leased)) == {"OK"}


def test_idle_streams_hold_no_lane(linked):
    broker, _, database = linked
    stub = broker.stub()
    enqueue(stub, *[job(f"idle-{n}") for n in range(10)])
    streams = [Stream(stub, f"idle-{n % 10}", in_flight=1) for n in range(200)]
    for stream in streams:
        stream.expect("opened")
    # Two hundred streams that each held a lane could not be answered by three.
    for number in range(50):
        assert enqueue(stub, job("other", b"%d" % number))
    looks = [in_use(database) for _ in range(50)]
    assert sorted(looks)[len(looks) // 2] <= 1, looks
    for stream in streams:
        stream.cancel()


def test_a_slow_database_refuses_the_surplus_in_time_and_makes_no_new_logins(linked):
    broker, proxy, database = linked
    stub = broker.stub()
    enqueue(stub, job("slow"))
    callers, length = (2_000, 30.0) if LONG else (300, 8.0)
    logins = proxy.accepted
    proxy.order(delay=0.5)
    refused, late, in_flight = Counter(), [], []
    until = time.monotonic() + length
    done = threading.Event()

    def watch():
        while not done.wait(0.2):
            in_flight.append(in_use(database))

    def call(_):
        begun = time.monotonic()
        try:
            stub.Enqueue(one("slow"), timeout=2.0, metadata=CALLER)
        except grpc.RpcError as error:
            said = Failed(error)
            refused[said.code] += 1
            # The client itself ends a call at its deadline; this is about those that the broker answers.
            if said.outcome and time.monotonic() - begun > 2.2:
                late.append(said)

    watcher = threading.Thread(target=watch)
    watcher.start()
    with ThreadPoolExecutor(callers) as askers:
        while time.monotonic() < until:
            list(askers.map(call, range(callers)))
    done.set()
    watcher.join()
    new = proxy.accepted - logins
    assert set(refused) <= {"UNAVAILABLE", "RESOURCE_EXHAUSTED", "DEADLINE_EXCEEDED"}, refused
    assert sum(refused.values()) > callers, "nothing was refused: the database was not slow"
    assert len(late) <= sum(refused.values()) // 50, (len(late), late[:3])
    assert new <= 20, f"{new} new logins"
    assert max(in_flight) <= 3, in_flight
    assert len(proxy.connections) <= 5, "three lanes, a listener and who sends wake-ups"
    proxy.heal()

    def is_quick():
        begun = time.monotonic()
        try:
            enqueue(stub, job("slow"), timeout=1)
        except grpc.RpcError:
            return False
        return time.monotonic() - begun < 0.5

    eventually(is_quick, within=15, what="service as before")
