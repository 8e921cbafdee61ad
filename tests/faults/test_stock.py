"""Stock under faults: connections cut and brokers killed at every step of every call, and under load. The books agree
afterwards, whatever happened, and every call that is made again says truly what became of the first one."""

import os
import random
import subprocess
import threading
import time
from collections import Counter
from contextlib import contextmanager
from urllib.parse import urlsplit

import grpc
import pytest

from conftest import fresh_database, fresh_mariadb
from faults.mariadb_proxy import MariaProxy
from faults.proxy import Proxy
from faults.stock_calls import KINDS, Call
from harness import LONG
from harness.calls import CALLER, Failed, eventually
from harness.stock import adjust, adjustment, cart, differences, find, ledger, line, state, unique, units
from harness.stubs import stock_pb as spb

MINE = (("leasehold-caller", "stock-fault"),)
TAG = "conn_tag:stock-fault"
# More statements than any call has.
STEPS = 100
pytestmark = pytest.mark.timeout(900 if LONG else 240)


@contextmanager
def linked(engine, server, brokers):
    """A broker that reaches its database through a proxy, the proxy, and the database."""
    with fresh_database(server) if engine == "postgres" else fresh_mariadb() as database:
        url = urlsplit(database.url)
        upstream = (url.hostname, url.port)
        proxy = Proxy(upstream, postgres=True) if engine == "postgres" else MariaProxy(upstream)
        broker = brokers(database.url.replace(f":{url.port}/", f":{proxy.port}/"), name=f"behind-{engine}")
        yield broker, proxy, database
        broker.end()
        proxy.close()


def stored_jobs(database):
    """How many jobs the calls stored."""
    return database.one("select count(*) from " + ("leasehold.job" if hasattr(database, "all") else "leasehold_job"))


@pytest.mark.parametrize("engine", ["postgres", "mariadb"])
def test_a_cut_at_every_statement_of_every_call_leaves_it_whole_or_undone(engine, server, brokers):
    """Failure case 14, of stock."""
    with linked(engine, server, brokers) as (broker, proxy, database):
        stub, table, jobs = broker.reservations(), Counter(), 0
        for kind in KINDS:
            for at in ("before", "after", "half") if LONG or engine == "postgres" else ("before", "after"):
                for step in range(STEPS):
                    call = Call(stub, kind)
                    cut = proxy.cut(TAG, at, skip=step)
                    said = call.make(stub, MINE)
                    proxy.disarm()
                    applied = call.is_applied(stub)
                    if said is None:
                        assert applied, (kind, at, step)
                    else:
                        assert cut.hits == 1 and said.outcome in ("unknown", "not-applied"), (kind, at, step, said)
                        assert not (applied and said.outcome == "not-applied"), (kind, at, step, said)
                    call.repeat(stub, applied)
                    jobs += call.jobs()
                    table[kind, at, "answered" if said is None else said.outcome, "applied" if applied else "undone"] += 1
                    if not cut.hits:
                        break
                else:
                    raise AssertionError(f"{kind} has more than {STEPS} statements")
        for row, count in sorted(table.items()):
            print(engine, *row, count)
        assert {row[2] for row in table} >= {"answered", "unknown"}
        assert differences(broker.stock_admin()) == []
        assert stored_jobs(database) == jobs


@pytest.mark.parametrize("engine", ["postgres", "mariadb"])
def test_kill_9_at_every_statement_of_every_call_leaves_it_whole_or_undone(engine, server, brokers):
    # A call is one statement on PostgreSQL and up to thirty on MariaDB: the two that sell, but in the long run.
    kinds = KINDS if LONG or engine == "postgres" else ("Reserve", "CommitReservation")
    with linked(engine, server, brokers) as (broker, proxy, database):
        kills, jobs = Counter(), 0
        for kind in kinds:
            for arrives in (False, True):
                for step in range(STEPS):
                    stub = broker.reservations()
                    call = Call(stub, kind)
                    cut = proxy.cut(TAG, "hold", skip=step)
                    said = []
                    caller = threading.Thread(target=lambda: said.append(call.make(stub, MINE)))
                    caller.start()
                    eventually(lambda: cut.hit.is_set() or said, within=30, what="the statement, or an answer")
                    if not cut.hit.is_set():
                        proxy.disarm()
                        caller.join(20)
                        assert said == [None], (kind, step, said)
                        jobs += call.jobs()
                        break
                    broker.kill()
                    if not arrives:
                        proxy.reset()
                    proxy.disarm()
                    caller.join(20)
                    assert said[0] is not None, "an answer from a broker that was killed"
                    broker.hang_up()
                    broker.start()
                    stub = broker.reservations()
                    applied = settled(call, stub)
                    assert not applied or arrives, (kind, step, "applied by a statement that never left")
                    call.repeat(stub, applied)
                    jobs += call.jobs()
                    kills[kind, "statement arrives" if arrives else "statement is lost", "applied" if applied else "undone"] += 1
        for row, count in sorted(kills.items()):
            print(engine, *row, count)
        assert {row[0] for row in kills} == set(kinds), kills
        assert differences(broker.stock_admin()) == []
        assert stored_jobs(database) == jobs


def settled(call, stub):
    """Whether it was applied, once nothing of the dead broker's goes on."""
    seen = [call.is_applied(stub)]
    deadline = time.monotonic() + 0.3
    while not seen[-1] and time.monotonic() < deadline:
        seen.append(call.is_applied(stub))
    return seen[-1]


class Shopper(threading.Thread):
    """Reserves and ends until its carts are used up. What fails without saying `not-applied` is made again until answered."""

    def __init__(self, broker, number, items, carts):
        super().__init__(daemon=True)
        self.broker, self.dice, self.items, self.carts = broker, random.Random(number), items, carts
        self.stub, self.mine = broker.reservations(), unique(f"shopper-{number}")
        self.ends, self.outcomes, self.wrong = {}, Counter(), None
        self.done = 0

    def run(self):
        try:
            for number in range(self.carts):
                self.shop(f"{self.mine}-{number}")
                self.done += 1
        except BaseException as error:
            self.wrong = error

    def until_answered(self, method, request):
        """The answer; a failure that is one."""
        deadline = time.monotonic() + 90
        while True:
            try:
                return getattr(self.stub, method)(request, timeout=20, metadata=CALLER, wait_for_ready=True)
            except grpc.RpcError as error:
                said = Failed(error)
                if said.reason in ("SOLD_OUT", "RESERVATION_ENDED"):
                    return said
                self.outcomes[said.code, said.reason, said.outcome] += 1
                assert said.code in ("UNAVAILABLE", "DEADLINE_EXCEEDED", "ABORTED", "CANCELLED", "UNKNOWN", "INTERNAL"), said
                assert said.reason is not None or said.outcome is None, said
                assert said.reason != "INTERNAL" and time.monotonic() < deadline, said
                time.sleep(0.01)

    def shop(self, reference):
        lines = [line(item, self.dice.randint(1, 4)) for item in self.dice.sample(self.items, self.dice.randint(1, 3))]
        held = self.until_answered("Reserve", cart(*lines, reference=reference, ttl=3600))
        if isinstance(held, Failed):
            self.ends[reference] = (None, lines)
            return
        reservation_id, end = held.reservation.reservation_id, self.dice.choice(["COMMITTED", "RELEASED", "HELD"])
        if end == "COMMITTED":
            answer = self.until_answered("CommitReservation", spb.CommitReservationRequest(reservation_id=reservation_id))
            assert not isinstance(answer, Failed), answer
        elif end == "RELEASED":
            answer = self.until_answered("ReleaseReservation", spb.ReleaseReservationRequest(reservation_id=reservation_id))
            assert not isinstance(answer, Failed) or answer.reason == "RESERVATION_ENDED", answer
        else:
            request = spb.ExtendReservationRequest(reservation_id=reservation_id, time_to_live={"seconds": 7200})
            assert not isinstance(self.until_answered("ExtendReservation", request), Failed)
        self.ends[reference] = (end, lines)


@pytest.mark.own_broker
def test_kill_9_while_twenty_shop_loses_no_unit_and_sells_none_twice(broker, program):
    """On every engine; `leasehold stock verify` afterwards says no difference."""
    items, carts, given = [unique(f"item-{number}") for number in range(5)], 60 if LONG else 12, 2_000
    adjust(broker.reservations(), *[adjustment(item, given) for item in items])
    shoppers = [Shopper(broker, number, items, carts) for number in range(20)]
    for shopper in shoppers:
        shopper.start()
    for kill in range(1, 4):
        enough = len(shoppers) * carts * kill // 4
        eventually(lambda: sum(one.done for one in shoppers) >= enough or any(one.wrong for one in shoppers), within=90,
                   what="shopping")
        broker.kill()
        broker.start()
    for shopper in shoppers:
        shopper.join(120)
        assert shopper.wrong is None and not shopper.is_alive(), shopper.wrong
    print(broker.engine, *sorted(sum((one.outcomes for one in shoppers), Counter()).items(), key=str), sep="\n")
    check(broker, {reference: end for shopper in shoppers for reference, end in shopper.ends.items()}, items, given)
    verified = subprocess.run([program, "stock", "verify"], capture_output=True, text=True, timeout=60, check=False,
                              env={"PATH": os.environ["PATH"], "LEASEHOLD_ADDRESS": f"http://127.0.0.1:{broker.port}"})
    print("$ leasehold stock verify", verified.stdout + verified.stderr, sep="\n")
    assert verified.returncode == 0, verified


def check(broker, ends, items, given):
    """That every reservation is as its shopper knows it, and that stock and ledger say the same."""
    stub, admin = broker.reservations(), broker.stock_admin()
    sold, held = Counter(), Counter()
    ids = {}
    for reference, (end, lines) in ends.items():
        if end is None:
            continue
        found = find(stub, reference=reference)
        assert state(found) == end, (reference, found)
        ids[found.reservation_id] = end
        for one in lines:
            sold[one.key.item] += one.quantity if end == "COMMITTED" else 0
            held[one.key.item] += one.quantity if end == "HELD" else 0
    assert len(ids) > len(ends) // 2 and {"COMMITTED", "RELEASED", "HELD"} <= set(ids.values()), "too little happened"
    for item in items:
        on_hand = given - sold[item]
        assert units(stub, item) == (on_hand, held[item], on_hand - held[item])
        entries = ledger(admin, item)
        assert (sum(one[1] for one in entries), sum(one[2] for one in entries)) == (on_hand, held[item])
        running_on_hand = running_held = 0
        for _, change, hold, _ in entries:
            running_on_hand, running_held = running_on_hand + change, running_held + hold
            assert 0 <= running_held <= running_on_hand, "held more than there was"
        last = Counter((kind, reservation) for kind, _, _, reservation in entries if reservation)
        assert set(last.values()) == {1}, "an entry twice"
        told = {reservation: kind for kind, _, _, reservation in entries if kind in ("COMMIT", "RELEASE", "EXPIRE")}
        assert all(ids[one] == {"COMMIT": "COMMITTED", "RELEASE": "RELEASED"}.get(kind) for one, kind in told.items())
    assert differences(admin) == []
