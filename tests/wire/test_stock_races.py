"""Many callers after the same stock, through two replicas (one where the database is embedded): never oversold, one of
everything, and no deadlock."""

import random
import threading
from collections import Counter

import grpc
import psycopg
import pymysql
import pytest

from conftest import fresh_database, fresh_mariadb
from harness import LONG
from harness.calls import CALLER, Failed, Stream, eventually, job
from harness.stock import adjust, adjustment, cart, commit, find, hold, line, release, short_lines, state, unique, units
from harness.stubs import stock_pb as spb

@pytest.fixture(params=["postgres", "mariadb", "sqlite"])
def replicas(request, server, brokers):
    """Two brokers on one database whose default is REPEATABLE READ, which must change nothing."""
    if request.param == "sqlite":
        yield [brokers(name="embedded", lanes_acquire_timeout="30s")] * 2
        return
    with fresh_database(server) if request.param == "postgres" else fresh_mariadb() as database:
        if request.param == "postgres":
            with database.connect() as session:
                session.execute(f'alter database "{database.name}" set default_transaction_isolation = "repeatable read"')
        pair = [brokers(database.url, name=f"replica-{number}", lanes_acquire_timeout="30s") for number in range(2)]
        for replica in pair:
            replica.database = database
        yield pair
        for replica in pair:
            replica.end()


def deadlocks(database):
    """How many the server counted: of this database, or of the whole server where it tells no more."""
    if database is None:
        return 0
    if hasattr(database, "all"):
        return database.one("select deadlocks from pg_stat_database where datname = current_database()")
    return database.one("select count from information_schema.innodb_metrics where name = 'lock_deadlocks'")


def all_at_once(stubs, requests, method="Reserve"):
    """Sends all before it waits for any; answers and failures, in order."""
    calls = [getattr(stubs[number % len(stubs)], method).future(request, timeout=60, metadata=CALLER)
             for number, request in enumerate(requests)]
    return [Failed(call.exception()) if call.exception() else call.result() for call in calls]


def test_two_hundred_calls_for_ten_units_sell_ten(replicas):
    """Failure case 55: check, then take."""
    stubs, database = [replica.reservations() for replica in replicas], replicas[0].database
    item, before = unique("ten"), deadlocks(database)
    adjust(stubs[0], adjustment(item, 10))
    answers = all_at_once(stubs, [cart(line(item)) for _ in range(200)])
    failed = [answer for answer in answers if isinstance(answer, Failed)]
    assert len(failed) == 190, Counter(str(one) for one in failed)
    assert {line_ for said in failed for line_ in short_lines(said)} == {(item, "main", 1, 0)}
    assert [units(stub, item) for stub in stubs] == [(10, 10, 0)] * 2
    assert deadlocks(database) == before


def test_mixed_sizes_never_hold_more_than_there_is(replicas):
    """Failure case 55: sizes 1 to 4, releases and commits between them; watched all the while."""
    item, rounds = unique("mixed"), 1000 if LONG else 200
    first = replicas[0].reservations()
    adjust(first, adjustment(item, 10))
    before, wrong, taken, outcomes = deadlocks(replicas[0].database), [], [], Counter()
    done = threading.Event()

    def watch(stub):
        while not done.is_set():
            on_hand, held, available = units(stub, item)
            if not (0 <= held <= on_hand <= 10 and available == on_hand - held):
                wrong.append((on_hand, held, available))

    def shop(number):
        dice, stub = random.Random(number), replicas[number % 2].reservations()
        for _ in range(rounds // 10):
            try:
                held = hold(stub, line(item, dice.randint(1, 4)), timeout=60)
            except grpc.RpcError as error:
                said = Failed(error)
                outcomes[said.reason] += 1
                short_lines(said)
                continue
            outcomes["held"] += 1
            if dice.random() < 0.1:
                commit(stub, held, timeout=60)
                adjust(stub, adjustment(item, sum(one.quantity for one in find(stub, reservation_id=held).lines)), timeout=60)
            else:
                release(stub, held, timeout=60)
            taken.append(held)

    threads = [threading.Thread(target=shop, args=(number,)) for number in range(10)]
    watchers = [threading.Thread(target=watch, args=(replica.reservations(),)) for replica in replicas]
    for thread in threads + watchers:
        thread.start()
    for thread in threads:
        thread.join(100)
    done.set()
    for thread in watchers:
        thread.join(20)
    assert not wrong, wrong[:5]
    assert outcomes.total() == rounds // 10 * 10 and set(outcomes) <= {"held", "SOLD_OUT"}, outcomes
    assert len(taken) == outcomes["held"] > rounds // 10
    assert units(first, item) == (10, 0, 10)
    assert deadlocks(replicas[0].database) == before


@pytest.mark.parametrize("quantity", [2, 64], ids=["by the fast way", "all that there is"])
def test_sixty_four_calls_with_one_reference_make_one_reservation_and_the_same_jobs(replicas, quantity):
    stubs, database = [replica.reservations() for replica in replicas], replicas[0].database
    item, queue, before = unique("once"), unique("q"), deadlocks(database)
    adjust(stubs[0], adjustment(item, 64))
    asked = cart(line(item, quantity), jobs=[job(queue, b"a"), job(queue, b"b")])
    answers = all_at_once(stubs, [asked] * 64)
    assert not [answer for answer in answers if isinstance(answer, Failed)], answers[:3]
    assert len({answer.reservation.reservation_id for answer in answers}) == 1
    assert sum(not answer.duplicate for answer in answers) == 1
    [job_ids] = {tuple(answer.job_ids) for answer in answers}
    assert units(stubs[0], item) == (64, quantity, 64 - quantity)
    stream = Stream(replicas[0].stub(), queue)
    assert tuple(one.job_id for one in stream.jobs(2)) == job_ids
    committed = all_at_once(stubs, [commit_request(answers[0], job(queue, b"c"))] * 64, "CommitReservation")
    assert not [answer for answer in committed if isinstance(answer, Failed)], committed[:3]
    assert sum(not answer.duplicate for answer in committed) == 1
    [paid] = {tuple(answer.job_ids) for answer in committed}
    assert tuple(one.job_id for one in stream.jobs(1)) == paid
    stream.quiet(0.5)
    assert units(stubs[1], item) == (64 - quantity, 0, 64 - quantity)
    assert deadlocks(database) == before


def test_a_delivery_that_sixty_four_report_at_once_comes_once(replicas):
    stubs, item = [replica.reservations() for replica in replicas], unique("delivery")
    request = spb.AdjustStockRequest(adjustments=[adjustment(item, 7), adjustment(item, 8, "outlet")], reference=unique("note"))
    answers = all_at_once(stubs, [request] * 64, "AdjustStock")
    assert not [answer for answer in answers if isinstance(answer, Failed)], answers[:3]
    assert sum(not answer.duplicate for answer in answers) == 1
    assert (units(stubs[0], item), units(stubs[0], item, "outlet")) == ((7, 0, 7), (8, 0, 8))


def test_carts_in_every_order_never_wait_for_each_other_in_a_circle(replicas):
    """R6: the same six lines in any order, taken and given back by both replicas."""
    stubs, database = [replica.reservations() for replica in replicas], replicas[0].database
    items, dice, before = [unique(f"circle-{number}") for number in range(6)], random.Random(6), deadlocks(database)
    adjust(stubs[0], *[adjustment(item, 40) for item in items])
    for _ in range(4 if LONG else 2):
        carts = [cart(*[line(item, dice.randint(1, 3)) for item in dice.sample(items, 4)]) for _ in range(60)]
        answers = all_at_once(stubs, carts)
        held = [answer.reservation.reservation_id for answer in answers if not isinstance(answer, Failed)]
        for answer in answers:
            if isinstance(answer, Failed):
                short_lines(answer)
        assert held
        requests = [spb.ReleaseReservationRequest(reservation_id=one) for one in held]
        released = all_at_once(stubs, requests, "ReleaseReservation")
        assert [state(answer.reservation) for answer in released] == ["RELEASED"] * len(held)
    assert [units(stubs[1], item) for item in items] == [(40, 0, 40)] * 6
    assert deadlocks(database) == before


def test_a_reserve_that_its_caller_gave_up_holds_all_or_nothing_and_no_longer_than_its_time(replicas):
    """Failure case 55: cancelled calls."""
    stub, item = replicas[0].reservations(), unique("given-up")
    adjust(stub, adjustment(item, 100))
    references = [unique("checkout") for _ in range(30)]
    calls = [stub.Reserve.future(cart(line(item), reference=reference, ttl=1), timeout=30, metadata=CALLER)
             for reference in references]
    for call in calls[::3]:
        call.cancel()
    for number, call in enumerate(calls):
        assert number % 3 == 0 or call.result()
    eventually(lambda: units(stub, item) == (100, 0, 100), within=30, what="the end of every hold")
    def everything():
        """None while a call that was given up still comes in."""
        try:
            return hold(stub, line(item, 100), ttl=60)
        except grpc.RpcError as error:
            return short_lines(Failed(error)) and None

    assert eventually(everything, within=30, what="a buyer of all of it")


@pytest.mark.parametrize("replicas", ["postgres", "mariadb"], indirect=True)
def test_sql_that_would_oversell_is_refused_by_the_database_itself(replicas):
    """Failure case 55: whoever writes past the broker."""
    stub, database, item = replicas[0].reservations(), replicas[0].database, unique("sql")
    adjust(stub, adjustment(item, 3))
    table = "leasehold.stock" if hasattr(database, "all") else "leasehold_stock"
    for change in ("held = on_hand + 1", "on_hand = -1", "unpooled = -1"):
        with database.connect() as session, session.cursor() as cursor:
            with pytest.raises((psycopg.errors.CheckViolation, pymysql.err.OperationalError)) as refused:
                cursor.execute(f"update {table} set {change} where item = %s", (item,))
            assert "constraint" in str(refused.value).lower(), refused.value
    assert units(stub, item) == (3, 0, 3)


def commit_request(answer, *jobs):
    """The Commit of what a Reserve answered."""
    return spb.CommitReservationRequest(reservation_id=answer.reservation.reservation_id, jobs=jobs)
