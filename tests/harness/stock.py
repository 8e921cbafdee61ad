"""Short forms of the calls about stock."""

import uuid

from google.rpc import error_details_pb2

from harness.calls import CALLER, Failed, seconds
from harness.stubs import stock_admin_pb as sapb
from harness.stubs import stock_pb as spb


def unique(name):
    """A name that no other test has."""
    return f"{name}-{uuid.uuid4().hex[:8]}"


def key(item, location="main"):
    """Where units lie."""
    return spb.StockKey(item=item, location=location)


def adjustment(item, delta, location="main"):
    """Units that come or go."""
    return spb.StockAdjustment(key=key(item, location), delta=delta)


def adjust(stub, *adjustments, reference=None, reason="", timeout=10, metadata=CALLER):
    """Adjusts; the answer."""
    request = spb.AdjustStockRequest(adjustments=adjustments, reference=reference or unique("adjust"), reason=reason)
    return stub.AdjustStock(request, timeout=timeout, metadata=metadata)


def line(item, quantity=1, location="main"):
    """One line of a cart."""
    return spb.ReservationLine(key=key(item, location), quantity=quantity)


def cart(*lines, reference=None, ttl=None, jobs=(), jobs_on_expiry=()):
    """A Reserve that is not sent yet."""
    return spb.ReserveRequest(reference=reference or unique("cart"), lines=lines, jobs=jobs, jobs_on_expiry=jobs_on_expiry,
                              time_to_live=None if ttl is None else seconds(ttl))


def reserve(stub, *lines, timeout=10, metadata=CALLER, **fields):
    """Reserves; the answer."""
    return stub.Reserve(cart(*lines, **fields), timeout=timeout, metadata=metadata)


def hold(stub, *lines, **fields):
    """Reserves; the reservation's id."""
    return reserve(stub, *lines, **fields).reservation.reservation_id


def commit(stub, reservation_id, *jobs, timeout=10, metadata=CALLER):
    """Commits; the answer."""
    request = spb.CommitReservationRequest(reservation_id=reservation_id, jobs=jobs)
    return stub.CommitReservation(request, timeout=timeout, metadata=metadata)


def release(stub, reservation_id, timeout=10, metadata=CALLER):
    """Releases; the reservation."""
    request = spb.ReleaseReservationRequest(reservation_id=reservation_id)
    return stub.ReleaseReservation(request, timeout=timeout, metadata=metadata).reservation


def extend(stub, reservation_id, ttl, timeout=10, metadata=CALLER):
    """Extends; the reservation."""
    request = spb.ExtendReservationRequest(reservation_id=reservation_id, time_to_live=seconds(ttl))
    return stub.ExtendReservation(request, timeout=timeout, metadata=metadata).reservation


def find(stub, timeout=10, metadata=CALLER, **by):
    """The reservation, by `reservation_id` or by `reference`."""
    return stub.GetReservation(spb.GetReservationRequest(**by), timeout=timeout, metadata=metadata).reservation


def stocks(stub, item, location="", page_size=0, timeout=10, metadata=CALLER):
    """By location: on hand, held, available; page by page."""
    found, token = {}, ""
    while True:
        request = spb.GetStockRequest(item=item, location=location, page_size=page_size, page_token=token)
        answer = stub.GetStock(request, timeout=timeout, metadata=metadata)
        for stock in answer.stocks:
            assert stock.key.item == item and stock.key.location not in found, stock
            found[stock.key.location] = (stock.on_hand, stock.held, stock.available)
        token = answer.next_page_token
        if not token:
            return found


def units(stub, item, location="main"):
    """On hand, held, available at one location."""
    return stocks(stub, item, location).get(location, (0, 0, 0))


def state(reservation):
    """HELD, COMMITTED, RELEASED or EXPIRED."""
    return spb.ReservationState.Name(reservation.state).removeprefix("RESERVATION_STATE_")


def short_lines(said):
    """What a SOLD_OUT says: (item, location, requested, available) of each line that is short."""
    assert isinstance(said, Failed) and said.reason == "SOLD_OUT", said
    assert (said.code, said.outcome) == ("FAILED_PRECONDITION", "not-applied"), said
    for detail in said.packed:
        sold_out = spb.SoldOut()
        if detail.Unpack(sold_out):
            return [(one.key.item, one.key.location, one.requested, one.available) for one in sold_out.lines]
    raise AssertionError(f"no SoldOut among {said.details}")


def precondition(said):
    """Kinds of the preconditions that failed."""
    for detail in said.packed:
        failure = error_details_pb2.PreconditionFailure()
        if detail.Unpack(failure):
            return [violation.type for violation in failure.violations]
    return []


def differences(admin, item="", timeout=60):
    """What the books of an item, or of all, disagree about; at least one key is compared."""
    found, compared = [], 0
    for frame in admin.VerifyStock(sapb.VerifyStockRequest(item=item), timeout=timeout, metadata=CALLER):
        found += frame.differences
        compared = frame.compared
    assert compared > 0, "nothing was compared"
    return found


def ledger(admin, item, location="main", timeout=10):
    """Entries of a key, oldest first, as (kind, on hand, held, reservation's id)."""
    found, token = [], ""
    while True:
        request = sapb.ListLedgerRequest(key=key(item, location), page_size=1000, page_token=token)
        answer = admin.ListLedger(request, timeout=timeout, metadata=CALLER)
        found += [(sapb.LedgerKind.Name(one.kind).removeprefix("LEDGER_KIND_"), one.on_hand, one.held, one.reservation_id)
                  for one in answer.entries]
        token = answer.next_page_token
        if not token:
            return found[::-1]
