"""A Prometheus of the test's own, that scrapes brokers once a second, and the queries of dashboards and alerts."""

import json
import re
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

from harness.cluster import free_port

ROOT = Path(__file__).resolve().parents[2]
DASHBOARDS = sorted((ROOT / "helm/leasehold/dashboards").glob("*.json"))
ALERTS = ROOT / "helm/leasehold/alerts"


class Prometheus:
    """One Prometheus, with the alerts of the chart."""

    def __init__(self, bin_dir, work, brokers, interval="1s"):
        self.work, self.port = Path(work), free_port()
        self.work.mkdir(parents=True, exist_ok=True)
        targets = [f"127.0.0.1:{broker.http_port}" for broker in brokers]
        config = {"global": {"scrape_interval": interval, "evaluation_interval": interval},
                  "rule_files": [str(ALERTS / "leasehold.yaml")],
                  "scrape_configs": [{"job_name": "leasehold", "static_configs": [{"targets": targets}]}]}
        (self.work / "prometheus.yml").write_text(json.dumps(config))  # JSON is YAML
        command = [f"{bin_dir}/prometheus", f"--config.file={self.work}/prometheus.yml", f"--storage.tsdb.path={self.work}/data",
                   f"--web.listen-address=127.0.0.1:{self.port}", "--log.level=warn"]
        with open(self.work / "log", "ab") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.work)

    def end(self):
        """Ends it."""
        self.process.kill()
        self.process.wait(20)

    def ask(self, path, **parameters):
        """An answer of its API; None while it does not answer yet."""
        url = f"http://127.0.0.1:{self.port}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        try:
            with urllib.request.urlopen(url, timeout=10) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            if error.code == 503:
                return None
            raise AssertionError(f"{path} {parameters}: {error.read().decode()}") from None
        except OSError:
            return None

    def query(self, text):
        """The series that a query finds now."""
        return (self.ask("query", query=text) or {"result": []})["result"]


class Panel:
    """A panel of a dashboard."""

    def __init__(self, raw):
        self.raw, self.title, self.kind = raw, raw["title"], raw["type"]
        self.queries = [(target["expr"], target["legendFormat"]) for target in raw.get("targets", [])]

    def __repr__(self):
        return self.title


def panels(dashboard):
    """The panels of a dashboard that show something."""
    return [Panel(raw) for raw in json.loads(Path(dashboard).read_text())["panels"] if raw["type"] != "row"]


def filled_in(query, interval="10s", span="1h", replica=".*"):
    """A panel's query with values in the place of Grafana's variables."""
    return query.replace("$__rate_interval", interval).replace("$__range", span).replace("$replica", replica)


METRIC = re.compile(r"\b((?:leasehold|db_client|rpc_server)_[a-z0-9_]+)\b(\{[^}]*\})?")
GROUPED = re.compile(r"\b(?:by|without|on|ignoring)\s*\(([^)]*)\)")
MATCHER = re.compile(r"(\w+)\s*(?:=~|!~|!=|=)\s*\"")


def names(query):
    """Each metric that a query names, with the labels that it is asked for; and labels that it groups by."""
    metrics = {}
    for name, matchers in METRIC.findall(re.sub(GROUPED, "", query)):
        metrics.setdefault(name, set()).update(MATCHER.findall(matchers))
    grouped = {label.strip() for labels in GROUPED.findall(query) for label in labels.split(",")}
    return metrics, grouped - {""}
