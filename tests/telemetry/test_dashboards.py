"""Dashboards and alerts against a real Prometheus that scrapes a real broker."""

import json
import re
import subprocess

import pytest

from harness.calls import CALLER, Stream, ack, enqueue, eventually, failure, job, nack, seconds
from harness.stubs import pb, stock_pb, stock_rpc
from harness.prometheus import ALERTS, DASHBOARDS, ROOT, Prometheus, filled_in, names, panels

# Labels that Prometheus adds, and the one of a distribution's buckets.
OF_PROMETHEUS = {"instance", "job", "le"}
# What a calm broker has nothing to show for: nobody waits for locks, no collector, nothing failed.
MAY_BE_EMPTY = {"Sessions that wait for a lock", "Age of the horizon", "Vacuum horizon"}


@pytest.fixture(scope="module")
def scene(request, program, server, prometheus_bin):
    """A broker on PostgreSQL with traffic of every kind behind it, and the Prometheus that scraped it."""
    from conftest import broker_maker, fresh_database, open_directory
    with open_directory() as work, fresh_database(server) as database, broker_maker(program, work) as make:
        broker = make(database.url, upkeep_reaper_interval="200ms", telemetry_queues_interval="1s", sampler_horizon_interval="1s", sampler_quiet_interval="1s",
                      telemetry_otlp_endpoint="http://127.0.0.1:1", callers_reports_max_lanes="2")
        prometheus = Prometheus(prometheus_bin, work / "prometheus", [broker])
        try:
            eventually(lambda: prometheus.query("leasehold_streams"), 30, "a first scrape")
            traffic(broker.stub(), "orders")
            sales(broker, "spring")
            scraped = prometheus.query("scrape_samples_scraped")[0]["value"][0]
            with database.connect(autocommit=False, application_name="reports") as session:
                session.execute("set transaction isolation level repeatable read")
                session.execute("select count(*) from leasehold.job").fetchone()
                eventually(lambda: prometheus.query("scrape_samples_scraped")[0]["value"][0] > scraped + 4, 30, "further scrapes")
                traffic(broker.stub(), "returns")
                sales(broker, "autumn")
                eventually(lambda: prometheus.query("rate(leasehold_jobs_redelivered_total[10s]) > 0"), 30, "the traffic")
                yield broker, prometheus
        finally:
            prometheus.end()


def traffic(stub, queue):
    """Jobs that are acked, retried, rejected, left to expire, settled too late and left lying, and calls that fail."""
    jobs = [job(queue, idempotency_key=f"k{n}", max_attempts=3) for n in range(10)]
    enqueue(stub, *jobs, jobs[0], job("mail"), job("mail", delay=60))
    stream = Stream(stub, queue, lease=1)
    first, *more = stream.jobs(10)
    assert ack(stub, *(one.lease_token for one in more[:5])) == ["OK"] * 5
    nack(stub, more[5].lease_token, delay=0)
    nack(stub, more[6].lease_token, action="REJECT", error="no")
    stream.jobs(2)  # the retried one, and one whose lease ran out
    eventually(lambda: ack(stub, first.lease_token) != ["BUSY"])
    failure(stub.Ack, pb.AckRequest(), timeout=5, metadata=CALLER)
    stream.cancel()


def sales(broker, season):
    """Reservations that are committed, sold out, mirrored and left to expire, and a pool that has to be refilled."""
    stock = stock_rpc.ReservationServiceStub(broker.channel())
    key = stock_pb.StockKey(item=season, location="shop")
    stock.AdjustStock(stock_pb.AdjustStockRequest(reference=season, adjustments=[stock_pb.StockAdjustment(key=key, delta=3_000)]),
                      metadata=CALLER)

    def cart(name, quantity, ttl=600, **fields):
        lines = [stock_pb.ReservationLine(key=key, quantity=quantity)]
        return stock_pb.ReserveRequest(reference=f"{season}-{name}", lines=lines, time_to_live=seconds(ttl), **fields)

    sold = stock.Reserve(cart("sold", 600), metadata=CALLER).reservation.reservation_id
    stock.CommitReservation(stock_pb.CommitReservationRequest(reservation_id=sold), metadata=CALLER)
    failure(stock.Reserve, cart("too-much", 9_999), timeout=10, metadata=CALLER)
    stock.Reserve(cart("elsewhere", 1, shadow=stock_pb.Shadow(expected=stock_pb.SHADOW_OUTCOME_SOLD_OUT)), metadata=CALLER)
    lapsed = stock.Reserve(cart("lapsed", 1, ttl=1), metadata=CALLER).reservation.reservation_id
    request = stock_pb.GetReservationRequest(reservation_id=lapsed)
    eventually(lambda: stock.GetReservation(request, metadata=CALLER).reservation.state == stock_pb.RESERVATION_STATE_EXPIRED, 60)
    drained = cart("drained", 501)
    stock.Reserve(drained, metadata=CALLER)
    eventually(lambda: "leasehold_stock_pool_depth_count " in broker.get("/metrics")[1], 60, "a refill")


@pytest.fixture(scope="module")
def shown(scene):
    """Labels of every metric on /metrics, as Prometheus sees them."""
    _, prometheus = scene
    series = prometheus.ask("series", **{"match[]": '{job="leasehold"}'})
    labels = {}
    for one in series:
        labels.setdefault(one["__name__"], set()).update(one.keys())
    return labels


def alerts():
    """Names and queries of the alerts."""
    text = (ALERTS / "leasehold.yaml").read_text()
    found = re.findall(r"- alert: (\w+)\n\s+expr: (\|\n(?:\s{10,}.*\n)+|.*\n)", text)
    assert len(found) == text.count("- alert:")
    return [(name, query.removeprefix("|")) for name, query in found]


QUERIES = [(f"{path.stem}: {panel.title}", query) for path in DASHBOARDS for panel in panels(path) for query, _ in panel.queries]


def unknown(where, query, shown):
    """Metrics and labels of a query that are not on /metrics."""
    metrics, grouped = names(query)
    assert metrics, where
    known = OF_PROMETHEUS.union(*(shown.get(name, set()) for name in metrics))
    return [f"{where}: no metric {name}" for name in metrics if name not in shown] + [
        f"{where}: {name} has no label {label}" for name, labels in metrics.items() if name in shown
        for label in labels - shown[name] - OF_PROMETHEUS] + [
        f"{where}: no metric of it has a label {label}" for label in grouped - known]


def test_every_metric_and_label_that_a_panel_or_an_alert_names_is_there(shown):
    assert [fault for where, query in QUERIES + alerts() for fault in unknown(where, query, shown)] == []


def test_every_query_of_a_panel_finds_something(scene):
    _, prometheus = scene
    empty = [where for where, query in QUERIES if not prometheus.query(filled_in(query, interval="30s", span="1m"))]
    assert [where for where in empty if where.split(": ")[1] not in MAY_BE_EMPTY] == []


def test_a_query_with_a_misspelt_metric_or_label_is_noticed(shown):
    wrong = 'sum by (quue) (rate(leasehold_jobs_settled_total{actoin="x"}[1m])) / sum(leasehold_jobs_acked_total)'
    assert unknown("here", wrong, shown) == ["here: no metric leasehold_jobs_acked_total",
                                             "here: leasehold_jobs_settled_total has no label actoin",
                                             "here: no metric of it has a label quue"]


def test_every_legend_names_labels_that_its_query_keeps(scene):
    _, prometheus = scene
    for path in DASHBOARDS:
        for panel in panels(path):
            for query, legend in panel.queries:
                for label in re.findall(r"\{\{(\w+)\}\}", legend):
                    for series in prometheus.query(filled_in(query, interval="30s", span="1m")):
                        assert label in series["metric"] or not series["metric"], f"{panel.title}: {label} in {series['metric']}"


def test_prometheus_takes_the_alerts_and_evaluates_them(scene):
    _, prometheus = scene
    groups = eventually(lambda: [group for group in prometheus.ask("rules")["groups"] if group["lastEvaluation"] > "1"], 20)
    rules = {rule["name"]: rule for group in groups for rule in group["rules"]}
    assert set(rules) == {name for name, _ in alerts()}
    assert {name: rule.get("lastError") for name, rule in rules.items() if rule["health"] == "err"} == {}


def test_the_alerts_fire_when_they_should_and_not_otherwise(prometheus_bin):
    for command in (["check", "rules", "leasehold.yaml"], ["test", "rules", "leasehold.test.yaml"]):
        done = subprocess.run([f"{prometheus_bin}/promtool", *command], cwd=ALERTS, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    tested = set(re.findall(r"alertname: (\w+)", (ALERTS / "leasehold.test.yaml").read_text()))
    assert tested == {name for name, _ in alerts()}, "each alert has a test"


def test_every_alert_leads_to_a_section_that_is_there():
    text = (ALERTS / "leasehold.yaml").read_text()
    leads = re.findall(r"runbook_url: (docs/\w+\.md)#([\w-]+)", text)
    assert len(leads) == text.count("- alert:")
    for page, anchor in leads:
        headings = re.findall(r"^#+ (.+)$", (ROOT / page).read_text(), re.M)
        assert anchor in {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings}, f"{page}#{anchor}"


def test_dashboards_hold_together():
    uids = set()
    for path in DASHBOARDS:
        board = json.loads(path.read_text())
        uids.add(board["uid"])
        ids = [panel["id"] for panel in board["panels"]]
        assert len(ids) == len(set(ids))
        taken = set()
        for panel in board["panels"]:
            place = panel["gridPos"]
            assert place["x"] + place["w"] <= 24
            cells = {(x, y) for x in range(place["x"], place["x"] + place["w"]) for y in range(place["y"], place["y"] + place["h"])}
            assert not cells & taken, f"{panel['title']} covers another panel"
            taken |= cells
            if panel["type"] != "row":
                assert panel["description"] and panel["targets"], panel["title"]
    assert len(uids) == len(DASHBOARDS) == 3


def test_no_label_on_metrics_grows_with_what_clients_make_up(scene):
    broker, _ = scene
    stub = broker.stub()
    for n in range(150):
        enqueue(stub, job("orders", idempotency_key="k1", max_attempts=3), metadata=(("leasehold-caller", f"made-up-{n}"),))
    text = broker.get("/metrics")[1]
    callers = set(re.findall(r'leasehold_db_connection_hold_time_seconds_total\{conn_tag="([^"]+)"', text))
    assert "other" in callers and len({name for name in callers if name.startswith("made-up")}) <= 64
