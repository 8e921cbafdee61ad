"""Every limit of the calls about stock, from data: at the limit accepted, over it refused with the field named, and nothing
stored or asked."""

import grpc
import pytest

from harness.calls import Failed, failure
from harness.stock import adjust, adjustment, cart, line, stocks, unique, units
from harness.stubs import stock_pb as spb
from wire import inputs

BAD = (("leasehold-caller", "bad_input"),)
GOOD = (("leasehold-caller", "good_input"),)
STORED = """select (select count(*) from leasehold.job), (select count(*) from leasehold.reservation),
                   (select count(*) from leasehold.reservation_line), (select count(*) from leasehold.stock_ledger),
                   (select count(*) from leasehold.stock_delta), (select count(*) from leasehold.stock)"""


def answer(stock, rpc, request, metadata):
    """What the call failed with; None where it passed."""
    try:
        getattr(stock, rpc)(request, timeout=10, metadata=metadata)
    except grpc.RpcError as error:
        return Failed(error)
    return None


@pytest.mark.own_broker
@pytest.mark.parametrize("name", inputs.files("stock"))
def test_every_input_is_answered_as_its_line_says_and_bad_ones_store_nothing(broker, stock, name):
    adjust(stock, adjustment("corpus", 10**9))
    wrong = []
    for entry, message in inputs.entries(name):
        where = f"{entry['rpc']} {list(entry['set'])[-1]}: {entry['note']}"
        if "bad" not in entry:
            continue
        said = answer(stock, entry["rpc"], message, BAD)
        if said is None:
            wrong.append(f"{where}: was accepted")
        elif (said.code, said.reason, said.domain, said.outcome) != ("INVALID_ARGUMENT", "INVALID_FIELD", "leasehold", "not-applied"):
            wrong.append(f"{where}: {said}")
        elif not any(field == entry["bad"] or field.startswith((entry["bad"] + "[", entry["bad"] + ".")) for field in said.fields):
            wrong.append(f"{where}: names {said.fields}")
        elif not all(said.rules) or len(said.message) > 4096:
            wrong.append(f"{where}: says no rule, or too much")
    if broker.database:
        assert broker.database.all(STORED) == [(0, 0, 0, 1, broker.database.one("select count(*) from leasehold.stock_delta"), 1)]
        assert not [entry for entry in broker.database.statements() if entry.caller == "bad_input"]
    assert stocks(stock, "corpus") == {"main": (10**9, 0, 10**9)}
    for entry, message in inputs.entries(name):
        if "bad" in entry:
            continue
        said = answer(stock, entry["rpc"], message, GOOD)
        if (said.reason if said else None) != entry.get("answer"):
            wrong.append(f"{entry['rpc']} {list(entry['set'])[-1]}: {entry['note']}: {said or 'passed'}")
    assert not wrong, "\n".join(wrong)


def test_all_faults_of_a_cart_are_named_together(stock):
    request = spb.ReserveRequest(reference="\n", lines=[line("a", 0), line("\t", 1), line("a", 2)], time_to_live={"seconds": 0})
    said = failure(stock.Reserve, request, timeout=10, metadata=BAD)
    assert {field.split("[")[0] for field in said.fields} == {"reference", "lines", "time_to_live"}
    assert len(said.fields) >= 4, said.fields


def test_a_request_without_its_parts_is_refused_and_not_taken_for_zero(stock):
    for request in (spb.ReserveRequest(), spb.ReserveRequest(reference="r", lines=[spb.ReservationLine(quantity=1)]),
                    spb.AdjustStockRequest(), spb.GetReservationRequest(), spb.ExtendReservationRequest(reservation_id="1")):
        call = getattr(stock, request.DESCRIPTOR.name.removesuffix("Request"))
        said = failure(call, request, timeout=10, metadata=BAD)
        assert (said.code, said.reason, said.outcome) == ("INVALID_ARGUMENT", "INVALID_FIELD", "not-applied"), (request, said)
        assert said.fields


def test_sums_past_what_a_number_holds_are_refused_and_change_nothing(broker, stock):
    item = unique("huge")
    adjust(stock, adjustment(item, 10**12))
    if broker.database:
        broker.database.all("update leasehold.stock set on_hand = 9223372036854775807 - 5, unpooled = unpooled + "
                            "(9223372036854775807 - 5 - on_hand) where item = %s returning 1", item)
        before = units(stock, item)
        request = spb.AdjustStockRequest(adjustments=[adjustment(item, 10**12)], reference=unique("over"))
        said = failure(stock.AdjustStock, request, timeout=10, metadata=GOOD)
        assert (said.code, said.outcome) == ("INVALID_ARGUMENT", "not-applied"), said
        assert units(stock, item) == before
    else:
        for _ in range(3):
            adjust(stock, adjustment(item, 10**12))
        assert units(stock, item) == (4 * 10**12, 0, 4 * 10**12)


def test_a_page_token_is_of_its_own_item_alone(stock):
    one, other = unique("page"), unique("page")
    adjust(stock, *[adjustment(item, 1, f"l{number}") for item in (one, other) for number in range(3)])
    token = stock.GetStock(spb.GetStockRequest(item=one, page_size=1), timeout=10).next_page_token
    assert token
    said = failure(stock.GetStock, spb.GetStockRequest(item=other, page_size=1, page_token=token), timeout=10)
    assert (said.code, said.fields) == ("INVALID_ARGUMENT", ["page_token"]), said


def test_a_cart_that_is_refused_leaves_its_reference_free(stock):
    item, reference = unique("free"), unique("checkout")
    adjust(stock, adjustment(item, 1))
    said = failure(stock.Reserve, cart(line(item), line(item), reference=reference), timeout=10, metadata=BAD)
    assert said.reason == "INVALID_FIELD"
    assert not stock.Reserve(cart(line(item), reference=reference), timeout=10, metadata=GOOD).duplicate
