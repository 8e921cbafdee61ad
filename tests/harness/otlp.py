"""An OpenTelemetry collector of the test's own, and what it received."""

import json
import subprocess
import time
from pathlib import Path

from harness.cluster import free_port

KINDS = {1: "INTERNAL", 2: "SERVER", 3: "CLIENT", 4: "PRODUCER", 5: "CONSUMER"}


def value(of):
    """What stands in an attribute."""
    for kind, inner in of.items():
        return int(inner) if kind == "intValue" else inner
    return None


def attributes(of):
    """Attributes as a dictionary."""
    return {one["key"]: value(one["value"]) for one in of.get("attributes", [])}


class Span:
    """One span."""

    def __init__(self, resource, raw):
        self.service, self.raw, self.name = resource.get("service.name"), raw, raw["name"]
        self.trace, self.id, self.parent = raw["traceId"], raw["spanId"], raw.get("parentSpanId", "")
        self.kind, self.attributes = KINDS.get(raw.get("kind")), attributes(raw)
        self.links = [(link["traceId"], link["spanId"], attributes(link)) for link in raw.get("links", [])]
        self.failed = raw.get("status", {}).get("code") == 2

    def __repr__(self):
        return f"{self.kind} {self.name} ({self.trace}/{self.id} in {self.parent or 'nothing'}) {self.attributes}"


class Collector:
    """A collector process."""

    def __init__(self, program, work, port=None, tls=None):
        self.program, self.work, self.port, self.tls = program, Path(work), port or free_port(), tls
        self.work.mkdir(parents=True, exist_ok=True)
        settings = [f"receivers::otlp::protocols::grpc::endpoint: 127.0.0.1:{self.port}",
                    f"exporters::lines::directory: {self.work}"]
        if tls:
            certificate, key = tls
            settings += [f"receivers::otlp::protocols::grpc::tls::cert_file: {certificate}",
                         f"receivers::otlp::protocols::grpc::tls::key_file: {key}"]
        settings += [f"service::pipelines::{signal}: {{receivers: [otlp], exporters: [lines]}}"
                     for signal in ("traces", "metrics", "logs")]
        command = [program, *(part for setting in settings for part in ("--config", f"yaml:{setting}"))]
        with open(self.work / "log", "ab") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def again(self):
        """Another one in its place, on its port."""
        return Collector(self.program, self.work, self.port, self.tls)

    def endpoint(self):
        """Where it listens."""
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self.port}"

    def end(self):
        """Ends it."""
        self.process.kill()
        self.process.wait(20)

    def _batches(self, signal):
        path = self.work / f"{signal}.jsonl"
        if not path.exists():
            return
        for line in path.read_text().splitlines(keepends=True):
            if line.endswith("\n"):
                yield json.loads(line)

    def spans(self):
        """All spans that came."""
        return [Span(attributes(of["resource"]), span) for batch in self._batches("traces") for of in batch["resourceSpans"]
                for scope in of["scopeSpans"] for span in scope.get("spans", [])]

    def logs(self):
        """All log records that came."""
        return [record for batch in self._batches("logs") for of in batch["resourceLogs"] for scope in of["scopeLogs"]
                for record in scope["logRecords"]]

    def metrics(self):
        """The last reading of each metric that came, by name, with the resource that it is about."""
        return {metric["name"]: (attributes(of["resource"]), metric) for batch in self._batches("metrics")
                for of in batch["resourceMetrics"] for scope in of["scopeMetrics"] for metric in scope["metrics"]}

    def wait_for(self, wanted, within=20):
        """Polls until `wanted` of the spans is true; the spans."""
        deadline = time.monotonic() + within
        while not wanted(spans := self.spans()):
            assert time.monotonic() < deadline, f"not in time; what came: {spans}"
            time.sleep(0.05)
        return spans

    def text(self):
        """Everything that came, as it was written down."""
        return "".join(path.read_text() for path in self.work.glob("*.jsonl"))
