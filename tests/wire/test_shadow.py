"""Another system's answers, mirrored: agreement and difference are reported, and nobody fails for what is in the data."""

import re
from pathlib import Path

import pytest

from harness.calls import CALLER, failure
from harness.stubs import pb, stock_admin_pb, stock_pb as rs, stock_rpc

PAGE = (Path(__file__).resolve().parents[2] / "docs/reservations.md").read_text()
HELD, SOLD_OUT = rs.SHADOW_OUTCOME_HELD, rs.SHADOW_OUTCOME_SOLD_OUT


@pytest.fixture(name="shop")
def _shop(brokers):
    """A broker with three units of espresso, and its service of stock."""
    broker = brokers()
    stock = stock_rpc.ReservationServiceStub(broker.channel())
    delivery = [rs.StockAdjustment(key=key(), delta=3)]
    stock.AdjustStock(rs.AdjustStockRequest(reference="delivery", adjustments=delivery), metadata=CALLER)
    return broker, stock


def key():
    """Where the espresso is."""
    return rs.StockKey(item="espresso", location="berlin")


def mirrored(reference, quantity, expected, **fields):
    """A Reserve that mirrors another system's answer."""
    lines = [rs.ReservationLine(key=key(), quantity=quantity)]
    return rs.ReserveRequest(reference=reference, lines=lines, shadow=rs.Shadow(expected=expected), **fields)


def available(stock):
    """Units that can be reserved."""
    return stock.GetStock(rs.GetStockRequest(item="espresso"), metadata=CALLER).stocks[0].available


def counted(broker, expected, result):
    """How many the broker has counted so."""
    line = f'leasehold_stock_shadow_total{{expected="{expected}",result="{result}"}} '
    (count,) = re.findall(re.escape(line) + r"(\d+)", broker.get("/metrics")[1])
    return int(count)


def test_where_both_hold_there_is_a_reservation_like_any_other(shop):
    broker, stock = shop
    request = mirrored("cart-1", 2, HELD, jobs=[pb.NewJob(queue="mail", payload=b"x")])
    answer = stock.Reserve(request, metadata=CALLER)
    assert not answer.shadow.differs and answer.shadow.reason == "" and len(answer.job_ids) == 1
    again = stock.Reserve(request, metadata=CALLER)
    assert again.duplicate and again.job_ids == answer.job_ids and not again.shadow.differs
    reservation_id = answer.reservation.reservation_id
    committed = stock.CommitReservation(rs.CommitReservationRequest(reservation_id=reservation_id), metadata=CALLER)
    assert committed.reservation.state == rs.RESERVATION_STATE_COMMITTED
    assert (available(stock), counted(broker, "held", "agrees")) == (1, 2)


def test_a_sale_that_is_sold_out_here_alone_differs_and_says_of_what(shop):
    broker, stock = shop
    answer = stock.Reserve(mirrored("cart-1", 5, HELD), metadata=CALLER)
    assert answer.shadow.differs and answer.shadow.reason == "SOLD_OUT" and not answer.HasField("reservation")
    (line,) = answer.shadow.lines
    assert (line.key, line.requested, line.available) == (key(), 5, 3)
    assert (available(stock), counted(broker, "held", "differs")) == (3, 1)
    assert "the shadow differs" in broker.output()


def test_where_the_other_system_is_sold_out_nothing_is_held_here_whatever_there_is(shop):
    broker, stock = shop
    jobs = [pb.NewJob(queue="mail", payload=b"x")]
    differs = stock.Reserve(mirrored("cart-1", 3, SOLD_OUT, jobs=jobs, jobs_on_expiry=jobs), metadata=CALLER)
    assert differs.shadow.differs and differs.shadow.reason == "" and not differs.HasField("reservation")
    agrees = stock.Reserve(mirrored("cart-2", 4, SOLD_OUT), metadata=CALLER)
    assert not agrees.shadow.differs and agrees.shadow.reason == "SOLD_OUT" and agrees.shadow.lines[0].available == 3
    assert available(stock) == 3 and not differs.job_ids
    assert (counted(broker, "sold_out", "differs"), counted(broker, "sold_out", "agrees")) == (1, 1)
    # it left no trace: the same reference is still free
    lines = [rs.ReservationLine(key=key(), quantity=1)]
    assert not stock.Reserve(rs.ReserveRequest(reference="cart-1", lines=lines), metadata=CALLER).duplicate


def test_a_reference_with_other_lines_is_a_difference_and_a_field_that_is_wrong_a_failure(shop):
    _, stock = shop
    stock.Reserve(mirrored("cart-1", 1, HELD), metadata=CALLER)
    answer = stock.Reserve(mirrored("cart-1", 2, HELD), metadata=CALLER)
    assert answer.shadow.differs and answer.shadow.reason == "KEY_REUSED"
    for request in (mirrored("cart-2", 0, HELD), mirrored("cart-2", 1, rs.SHADOW_OUTCOME_UNSPECIFIED), mirrored("cart-2", 1, 17)):
        failed = failure(stock.Reserve, request, timeout=5, metadata=CALLER)
        assert (failed.code, failed.reason, failed.outcome) == ("INVALID_ARGUMENT", "INVALID_FIELD", "not-applied")
    assert available(stock) == 2


def test_items_whose_reservations_are_stopped_here_are_not_compared(shop):
    broker, stock = shop
    stop = stock_admin_pb.SetStockSwitchRequest(item_prefix="esp", disabled=True, reason="recount")
    broker.stock_admin().SetStockSwitch(stop, metadata=CALLER)
    for reference, expected in [("cart-1", HELD), ("cart-2", SOLD_OUT)]:
        answer = stock.Reserve(mirrored(reference, 1, expected), metadata=CALLER)
        assert not answer.shadow.differs and answer.shadow.reason == "DISABLED" and not answer.HasField("reservation")
    assert [counted(broker, there, "not_compared") for there in ("held", "sold_out")] == [1, 1]
    assert "the shadow differs" not in broker.output()


def test_the_snippet_of_the_page_runs(shop, capsys):
    _, stock = shop
    (snippet,) = re.findall(r"^```python\n# shadow.py\n(.*?)^```$", PAGE, re.M | re.S)
    snippet = snippet.replace("timeout=0.5", "timeout=30")
    for checkout, quantity, held_there in [("cart-1", 2, True), ("cart-2", 2, True), ("cart-3", 1, False), ("cart-4", 2, False)]:
        lines = [rs.ReservationLine(key=key(), quantity=quantity)]
        names = {"stock": stock, "pb": rs, "caller": CALLER, "checkout": checkout, "lines": lines, "held_there": held_there}
        exec(compile(snippet, "reservations.md", "exec"), names)
    assert capsys.readouterr().out == "cart-2 here: SOLD_OUT\ncart-3 here: free\n"
