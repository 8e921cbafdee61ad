"""A rolling restart under load, in small or (`./test --long`) in full."""

import pytest

from faults.rolling import play
from harness import LONG


@pytest.mark.timeout(3000 if LONG else 300)
def test_a_rolling_restart_loses_nothing_fails_no_ack_and_delivers_nothing_twice(postgres, brokers, work):
    jobs, workers, rounds = (60_000, 20, 2) if LONG else (4_000, 6, 1)
    three = [brokers(postgres.url, name=f"replica-{name}") for name in "abc"]
    outcome = play(postgres.url, three, work / "history", jobs, workers, rounds)
    assert outcome.report.valid is True, outcome.report.table()
    assert [code for _, code, _, _ in outcome.restarts] == [0] * 3 * rounds
    totals = outcome.totals
    assert totals["jobs enqueued"] == totals["leases"] == totals["acked OK"] == jobs, outcome.table()
    lost = ("jobs lost", "redeliveries", "leases with a second attempt", "Acks that did not end OK")
    assert [totals[name] for name in lost] == [0] * 4, outcome.table()
    through_another = [totals[f"{rpc} OK through another replica than the lease's"] for rpc in ("Extends", "Acks")]
    assert min(through_another) > jobs // 10, "leases were not settled elsewhere"
    # Nothing but a replica that is away makes a call fail, and then nothing was done.
    assert all(code == "UNAVAILABLE" and told != "unknown" for _, code, told in outcome.retried), outcome.table()
