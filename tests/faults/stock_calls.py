"""The calls about stock, each ready to be made, lost, and made again."""

from harness.calls import CALLER, Failed
from harness.stock import adjust, adjustment, cart, find, hold, line, state, unique, units
from harness.stubs import pb
from harness.stubs import stock_pb as spb

# More than any pool, so that the rows of the stock are locked.
BULK = 5_000
QUEUE = "after-stock"


def job(payload):
    """A job of a call's own."""
    return pb.NewJob(queue=QUEUE, payload=payload)


class Call:
    """One call on an item of its own. `applied` says whether its effect is there; `expected` is what stock shows then."""

    def __init__(self, stub, kind):
        self.kind, self.item = kind, unique(kind.lower())
        self.method, self.reservation_id = kind.removesuffix("Bulk"), None
        adjust(stub, adjustment(self.item, 2 * BULK))
        if kind in ("CommitReservation", "ReleaseReservation", "ExtendReservation"):
            self.reservation_id = hold(stub, line(self.item, 3), ttl=600)
            self.expires = find(stub, reservation_id=self.reservation_id).expires_at.ToMicroseconds()
        self.request = getattr(self, f"_{self.method}")()
        self.before = units(stub, self.item)

    def _AdjustStock(self):
        return spb.AdjustStockRequest(adjustments=[adjustment(self.item, -7)], reference=unique("count"))

    def _Reserve(self):
        return cart(line(self.item, BULK if self.kind.endswith("Bulk") else 3), jobs=[job(b"reserved")])

    def _CommitReservation(self):
        return spb.CommitReservationRequest(reservation_id=self.reservation_id, jobs=[job(b"paid")])

    def _ReleaseReservation(self):
        return spb.ReleaseReservationRequest(reservation_id=self.reservation_id)

    def _ExtendReservation(self):
        return spb.ExtendReservationRequest(reservation_id=self.reservation_id, time_to_live={"seconds": 7200})

    def make(self, stub, metadata=CALLER, timeout=10):
        """Makes it; the failure, or None."""
        self.answer = None
        future = getattr(stub, self.method).future(self.request, timeout=timeout, metadata=metadata)
        if future.exception() is not None:
            return Failed(future.exception())
        self.answer = future.result()
        return None

    def after(self):
        """What stock shows when it was applied, once."""
        on_hand, held, _ = self.before
        change = {"AdjustStock": (-7, 0), "Reserve": (0, 3), "ReserveBulk": (0, BULK), "CommitReservation": (-3, -3),
                  "ReleaseReservation": (0, -3), "ExtendReservation": (0, 0)}[self.kind]
        on_hand, held = on_hand + change[0], held + change[1]
        return on_hand, held, on_hand - held

    def is_applied(self, stub):
        """Whether its effect is there: whole, or not at all."""
        if self.kind == "ExtendReservation":
            assert units(stub, self.item) == self.before
            return find(stub, reservation_id=self.reservation_id).expires_at.ToMicroseconds() > self.expires
        now = units(stub, self.item)
        assert now in (self.before, self.after()), (self.kind, now, self.before, self.after())
        return now == self.after()

    def repeat(self, stub, applied):
        """Makes it again: afterwards it is applied once, and its answer knows whether it had been before."""
        said = self.make(stub, timeout=30)
        if said is not None:
            assert (self.kind, said.reason) == ("ReleaseReservation", "RESERVATION_ENDED") and applied, (self.kind, said)
            assert state(find(stub, reservation_id=self.reservation_id)) == "RELEASED"
        elif hasattr(self.answer, "duplicate"):
            assert self.answer.duplicate is applied, (self.kind, self.answer)
        assert self.is_applied(stub), self.kind
        assert units(stub, self.item) == self.after(), self.kind

    def jobs(self):
        """How many jobs it stores."""
        return len(getattr(self.request, "jobs", ()))


KINDS = ("AdjustStock", "Reserve", "ReserveBulk", "CommitReservation", "ReleaseReservation", "ExtendReservation")
