"""Reservations over the wire: holds, their one end, carts, references, and jobs of the same transaction."""

import pytest

from harness.calls import CALLER, Stream, ack, enqueue, eventually, failure, job
from harness.operators import update
from harness.stock import (adjust, adjustment, cart, commit, extend, find, hold, line, precondition, release, reserve, short_lines,
                           state, stocks, unique, units)
from harness.stubs import stock_pb as spb


def refused(call, request, metadata=CALLER):
    """What a call that must fail said."""
    return failure(call, request, timeout=10, metadata=metadata)


def ended(said):
    """Whether a failure says that the reservation is over."""
    return ((said.code, said.reason, said.outcome) == ("FAILED_PRECONDITION", "RESERVATION_ENDED", "not-applied")
            and bool(precondition(said)))


def commit_request(reservation_id, *jobs):
    """A Commit that is not sent yet."""
    return spb.CommitReservationRequest(reservation_id=reservation_id, jobs=jobs)


def release_request(reservation_id):
    """A Release that is not sent yet."""
    return spb.ReleaseReservationRequest(reservation_id=reservation_id)


def test_a_committed_reservation_is_gone_from_the_stock_and_ends_once(stock):
    item = unique("sold")
    [added] = adjust(stock, adjustment(item, 10)).stocks
    assert (added.on_hand, added.held, added.available) == (10, 0, 10)
    held = reserve(stock, line(item, 3)).reservation
    assert state(held) == "HELD" and held.expires_at.ToMicroseconds() > held.created_at.ToMicroseconds()
    assert [(one.key.item, one.key.location, one.quantity) for one in held.lines] == [(item, "main", 3)]
    assert units(stock, item) == (10, 3, 7)
    answer = commit(stock, held.reservation_id)
    assert (state(answer.reservation), answer.duplicate) == ("COMMITTED", False)
    assert units(stock, item) == (7, 0, 7)
    again = commit(stock, held.reservation_id)
    assert (state(again.reservation), again.duplicate) == ("COMMITTED", True)
    assert ended(refused(stock.ReleaseReservation, release_request(held.reservation_id)))
    assert ended(refused(stock.ExtendReservation, spb.ExtendReservationRequest(
        reservation_id=held.reservation_id, time_to_live={"seconds": 60})))
    assert units(stock, item) == (7, 0, 7)


def test_a_released_reservation_frees_its_units_and_ends_once(stock):
    item = unique("freed")
    adjust(stock, adjustment(item, 5))
    held = hold(stock, line(item, 5))
    assert short_lines(refused(stock.Reserve, cart(line(item)))) == [(item, "main", 1, 0)]
    assert state(release(stock, held)) == "RELEASED"
    assert units(stock, item) == (5, 0, 5)
    assert ended(refused(stock.CommitReservation, commit_request(held)))
    assert units(stock, item) == (5, 0, 5)
    assert hold(stock, line(item, 5))


def test_a_reference_is_one_reservation_whatever_became_of_it(stock):
    item = unique("same")
    adjust(stock, adjustment(item, 10))
    asked = dict(reference=unique("checkout"), jobs=[job(unique("q")) for _ in range(3)])
    first = reserve(stock, line(item, 2), **asked)
    assert not first.duplicate and len(set(first.job_ids)) == 3

    def again(expected):
        answer = reserve(stock, line(item, 2), **asked)
        assert answer.duplicate and state(answer.reservation) == expected
        assert answer.reservation.reservation_id == first.reservation.reservation_id
        assert list(answer.job_ids) == list(first.job_ids)

    again("HELD")
    assert units(stock, item) == (10, 2, 8)
    commit(stock, first.reservation.reservation_id)
    again("COMMITTED")
    assert units(stock, item) == (8, 0, 8)
    by_reference = find(stock, reference=asked["reference"])
    assert by_reference == find(stock, reservation_id=first.reservation.reservation_id)


def test_other_lines_under_a_reference_are_refused_and_change_nothing(stock):
    item = unique("other")
    adjust(stock, adjustment(item, 10), adjustment(item, 10, "outlet"))
    reference = unique("checkout")
    hold(stock, line(item, 2), reference=reference)
    for lines in ([line(item, 3)], [line(item, 2, "outlet")], [line(item, 2), line(item, 1, "outlet")]):
        said = refused(stock.Reserve, cart(*lines, reference=reference))
        assert (said.code, said.reason, said.outcome) == ("ALREADY_EXISTS", "KEY_REUSED", "not-applied"), said
    assert stocks(stock, item) == {"main": (10, 2, 8), "outlet": (10, 0, 10)}


def test_references_and_keys_are_compared_byte_for_byte(stock):
    item = unique("Bytes")
    names = [item, item.lower(), item + " ", " " + item]
    adjust(stock, *[adjustment(name, number + 1) for number, name in enumerate(names)])
    adjust(stock, adjustment(item, 7, "A"), adjustment(item, 8, "a"), adjustment(item, 9, "a "))
    assert [units(stock, name)[0] for name in names] == [1, 2, 3, 4]
    assert [units(stock, item, place)[0] for place in ("A", "a", "a ")] == [7, 8, 9]
    reference = unique("Ref")
    ids = {hold(stock, line(item, 1, "a"), reference=name) for name in (reference, reference.lower(), reference + " ")}
    assert len(ids) == 3 and units(stock, item, "a") == (8, 3, 5)


def test_a_cart_is_held_whole_or_not_at_all_and_its_failure_leaves_no_trace(stock):
    full, scarce, none = unique("full"), unique("scarce"), unique("none")
    adjust(stock, adjustment(full, 100), adjustment(scarce, 3))
    reference, queue = unique("checkout"), unique("q")
    asked = cart(line(scarce, 4), line(full, 10), line(none, 1), reference=reference, jobs=[job(queue)])
    said = refused(stock.Reserve, asked)
    assert precondition(said)
    assert sorted(short_lines(said)) == sorted([(scarce, "main", 4, 3), (none, "main", 1, 0)])
    assert (units(stock, full), units(stock, scarce)) == ((100, 0, 100), (3, 0, 3))
    said = failure(find, stock, reference=reference)
    assert (said.code, said.reason) == ("NOT_FOUND", "NOT_FOUND"), said
    adjust(stock, adjustment(scarce, 1), adjustment(none, 1))
    tried_anew = stock.Reserve(asked, timeout=10, metadata=CALLER)
    assert not tried_anew.duplicate and len(tried_anew.job_ids) == 1
    assert [one.key.item for one in tried_anew.reservation.lines] == sorted(one.key.item for one in asked.lines)
    assert [units(stock, name) for name in (full, scarce, none)] == [(100, 10, 90), (4, 4, 0), (1, 1, 0)]


def test_quantities_larger_than_any_pool_are_held(stock):
    item = unique("bulk")
    adjust(stock, adjustment(item, 2_500_000))
    first = hold(stock, line(item, 1_000_000))
    hold(stock, line(item, 1_000_000))
    hold(stock, line(item, 1_234))
    assert units(stock, item) == (2_500_000, 2_001_234, 498_766)
    assert short_lines(refused(stock.Reserve, cart(line(item, 498_767)))) == [(item, "main", 498_767, 498_766)]
    hold(stock, line(item, 498_766))
    release(stock, first)
    assert units(stock, item) == (2_500_000, 1_500_000, 1_000_000)
    hold(stock, line(item, 1_000_000))
    assert units(stock, item) == (2_500_000, 2_500_000, 0)


def test_an_adjustment_never_takes_what_is_held_and_is_all_or_nothing(stock):
    item, other = unique("taken"), unique("other")
    adjust(stock, adjustment(item, 10), adjustment(other, 1))
    held = hold(stock, line(item, 6))
    request = spb.AdjustStockRequest(adjustments=[adjustment(other, 5), adjustment(item, -5)], reference=unique("count"))
    said = refused(stock.AdjustStock, request)
    assert (said.code, said.reason, said.outcome) == ("FAILED_PRECONDITION", "SOLD_OUT", "not-applied"), said
    assert (units(stock, item), units(stock, other)) == ((10, 6, 4), (1, 0, 1))
    release(stock, held)
    answer = stock.AdjustStock(request, timeout=10, metadata=CALLER)
    assert [(one.key.item, one.on_hand, one.available) for one in answer.stocks] == [(other, 6, 6), (item, 5, 5)]


def test_an_adjustment_is_made_once_by_its_reference(stock):
    item = unique("count")
    reference = unique("delivery")
    assert not adjust(stock, adjustment(item, 10), reference=reference, reason="delivery 7").duplicate
    hold(stock, line(item, 4))
    again = adjust(stock, adjustment(item, 10), reference=reference, reason="delivery 7")
    assert again.duplicate and [(one.on_hand, one.held, one.available) for one in again.stocks] == [(10, 4, 6)]
    request = spb.AdjustStockRequest(adjustments=[adjustment(item, 11)], reference=reference)
    said = refused(stock.AdjustStock, request)
    assert (said.code, said.reason, said.outcome) == ("ALREADY_EXISTS", "KEY_REUSED", "not-applied"), said
    assert units(stock, item) == (10, 4, 6)


def test_jobs_come_with_the_reservation_and_its_commit_and_never_without(stock, stub, admin):
    item, queue = unique("jobs"), unique("q")
    adjust(stock, adjustment(item, 2))
    reserved = reserve(stock, line(item, 2), jobs=[job(queue, b"reserved-1"), job(queue, b"reserved-2")])
    said = refused(stock.Reserve, cart(line(item), jobs=[job(queue, b"never")]))
    assert said.reason == "SOLD_OUT"
    stream = Stream(stub, queue)
    got = stream.jobs(2)
    assert [(one.payload, one.job_id) for one in got] == list(zip((b"reserved-1", b"reserved-2"), reserved.job_ids))
    reservation_id = reserved.reservation.reservation_id
    committed = commit(stock, reservation_id, job(queue, b"paid"))
    [paid] = stream.jobs(1)
    assert (paid.payload, [paid.job_id]) == (b"paid", list(committed.job_ids))
    again = commit(stock, reservation_id, job(queue, b"paid"))
    assert again.duplicate and list(again.job_ids) == list(committed.job_ids)
    enqueue(stub, job(queue, b"last"))
    assert stream.jobs(1)[0].payload == b"last", "a repeated Commit enqueued again, or a failed Reserve did"


def test_a_reservation_whose_jobs_cannot_be_stored_is_not_made(stock, stub, admin):
    """Failure case 55: the second half of a call fails; neither half exists."""
    item, queue, shut = unique("both"), unique("q"), unique("shut")
    adjust(stock, adjustment(item, 5))
    enqueue(stub, job(queue, b"x", idempotency_key="taken"))
    update(admin, shut, create=True, disabled_reason="closed")
    held = hold(stock, line(item, 1))
    for jobs, reason in (([job(queue, b"y", idempotency_key="taken")], "KEY_REUSED"), ([job(queue), job(shut)], "DISABLED")):
        reference = unique("checkout")
        said = refused(stock.Reserve, cart(line(item, 2), reference=reference, jobs=jobs))
        assert (said.reason, said.outcome) == (reason, "not-applied"), said
        assert failure(find, stock, reference=reference).code == "NOT_FOUND"
        said = refused(stock.CommitReservation, commit_request(held, *jobs))
        assert (said.reason, said.outcome) == (reason, "not-applied"), said
        assert state(find(stock, reservation_id=held)) == "HELD"
    assert units(stock, item) == (5, 1, 4)
    stream = Stream(stub, queue)
    assert stream.jobs(1)[0].payload == b"x"
    stream.quiet(0.3)


def test_an_expired_reservation_gives_its_units_back_and_enqueues_its_jobs_once(stock, stub):
    item, queue = unique("lapsed"), unique("q")
    adjust(stock, adjustment(item, 3))
    reference = unique("checkout")
    held = hold(stock, line(item, 3), reference=reference, ttl=1, jobs_on_expiry=[job(queue, b"lapsed-1"), job(queue, b"lapsed-2")])
    stream = Stream(stub, queue)
    got = stream.jobs(2, within=30)
    assert [one.payload for one in got] == [b"lapsed-1", b"lapsed-2"]
    assert state(find(stock, reservation_id=held)) == "EXPIRED"
    assert units(stock, item) == (3, 0, 3)
    assert ended(refused(stock.CommitReservation, commit_request(held)))
    assert ended(refused(stock.ReleaseReservation, release_request(held)))
    assert ack(stub, *[one.lease_token for one in got]) == ["OK", "OK"]
    assert state(reserve(stock, line(item, 3), reference=reference, ttl=1,
                         jobs_on_expiry=[job(queue, b"lapsed-1"), job(queue, b"lapsed-2")]).reservation) == "EXPIRED"
    hold(stock, line(item, 3))
    stream.quiet(1.5)


def test_jobs_for_the_expiry_of_a_reservation_that_ended_otherwise_are_never_enqueued(stock, stub):
    item, queue = unique("ended"), unique("q")
    adjust(stock, adjustment(item, 3))
    sold = hold(stock, line(item), ttl=1, jobs_on_expiry=[job(queue, b"no")])
    commit(stock, sold)
    freed = hold(stock, line(item), ttl=1, jobs_on_expiry=[job(queue, b"no")])
    release(stock, freed)
    lapsed = hold(stock, line(item), ttl=1, jobs_on_expiry=[job(queue, b"yes")])
    stream = Stream(stub, queue)
    assert stream.jobs(1, within=30)[0].payload == b"yes"
    assert [state(find(stock, reservation_id=one)) for one in (sold, freed, lapsed)] == ["COMMITTED", "RELEASED", "EXPIRED"]
    stream.quiet(1)


def test_expired_holds_count_as_free_before_anybody_swept_them(stock):
    item = unique("stale")
    adjust(stock, adjustment(item, 2))
    hold(stock, line(item, 2), ttl=1)
    eventually(lambda: units(stock, item) == (2, 0, 2), within=20, what="the end of the hold")
    assert hold(stock, line(item, 2))


def test_an_extended_reservation_lives_that_long_and_never_shorter(stock):
    item = unique("longer")
    adjust(stock, adjustment(item, 1))
    held = reserve(stock, line(item), ttl=600).reservation
    longer = extend(stock, held.reservation_id, 3600)
    assert longer.expires_at.ToSeconds() - held.expires_at.ToSeconds() >= 2900
    assert extend(stock, held.reservation_id, 1).expires_at == longer.expires_at
    assert find(stock, reservation_id=held.reservation_id).expires_at == longer.expires_at


def test_what_does_not_exist_is_not_found(stock):
    nobody = "9223372036854775807"
    for call, request in ((stock.CommitReservation, commit_request(nobody)),
                          (stock.ReleaseReservation, release_request(nobody)),
                          (stock.ExtendReservation, spb.ExtendReservationRequest(reservation_id=nobody, time_to_live={"seconds": 60})),
                          (stock.GetReservation, spb.GetReservationRequest(reservation_id=nobody)),
                          (stock.GetReservation, spb.GetReservationRequest(reference=unique("nobody")))):
        said = refused(call, request)
        assert (said.code, said.reason, said.outcome) == ("NOT_FOUND", "NOT_FOUND", "not-applied"), said
        assert "ResourceInfo" in said.details
    assert stocks(stock, unique("nobody")) == {}


@pytest.mark.parametrize("page_size", [1, 3, 1000])
def test_all_locations_of_an_item_are_met_once_whatever_the_page(stock, page_size):
    item = unique("spread")
    adjust(stock, *[adjustment(item, number + 1, f"store-{number:02}") for number in range(7)])
    adjust(stock, adjustment(item + "x", 5, "store-00"))
    hold(stock, line(item, 2, "store-03"), line(item, 1, "store-00"))
    expected = {f"store-{number:02}": (number + 1, 0, number + 1) for number in range(7)}
    expected |= {"store-03": (4, 2, 2), "store-00": (1, 1, 0)}
    assert stocks(stock, item, page_size=page_size) == expected
    assert stocks(stock, item, "store-03") == {"store-03": (4, 2, 2)}
