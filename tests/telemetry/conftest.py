"""A collector and a Prometheus for each test that wants one."""

import os

import pytest

from harness.otlp import Collector


def _needed(name):
    value = os.environ.get(name)
    if not value:
        pytest.exit(f"{name} is not set: run these tests by ./test telemetry", returncode=2)
    return value


@pytest.fixture(scope="session")
def collector_program():
    """Where the collector is."""
    return _needed("LEASEHOLD_TEST_COLLECTOR")


@pytest.fixture
def collector(collector_program, work):
    """A collector of the test's own."""
    made = Collector(collector_program, work / "collector")
    yield made
    made.end()


@pytest.fixture(scope="session")
def prometheus_bin():
    """Where prometheus and promtool are."""
    return _needed("LEASEHOLD_TEST_PROMETHEUS_BIN")


@pytest.fixture
def traced(collector, brokers):
    """Makes brokers that send everything to the collector, soon."""
    def make(url=None, **settings):
        defaults = {"telemetry_otlp_endpoint": collector.endpoint(), "telemetry_sample": "1",
                    "telemetry_export_interval": "100ms", "telemetry_metrics_interval": "1s"}
        return brokers(url, **{**defaults, **settings})
    return make
