"""What the chart does not let through: unknown names, wrong kinds of values, and what makes no sense together."""

import pytest
import yaml

from harness.chart import template

EXTERNAL = {"database": {"existingSecret": {"name": "db"}}}
EMBEDDED = {"database": {"mode": "embedded"}}


def merged(base, more):
    """Both, sections in each other."""
    both = dict(base)
    for name, value in more.items():
        both[name] = merged(both[name], value) if isinstance(value, dict) and isinstance(both.get(name), dict) else value
    return both


def answer(work, values):
    path = work / "values.yaml"
    path.write_text(yaml.safe_dump(values))
    return template(path)


def refused(work, values):
    """Why; fails where it is let through."""
    got = answer(work, values)
    assert got.returncode != 0, "it was let through"
    return got.stderr


UNKNOWN = [
    ({"replicaCount": 2}, "replicaCount"),
    ({"image": {"repo": "x"}}, "repo"),
    ({"database": {"url": "postgres://u:hunter2@db/app"}}, "url"),
    ({"config": {"listn": "x"}}, "listn"),
    ({"config": {"lanes": {"cuont": 8}}}, "cuont"),
    ({"config": {"lane": {"count": 8}}}, "lane"),
    ({"config": {"callers": {"reports": {"lanes": 2}}}}, "lanes"),
    ({"config": {"database_url": "postgres://u:hunter2@db/app"}}, "database_url"),
    ({"config": {"telemetry": {"otlp_headers": ["authorization=hunter2"]}}}, "otlp_headers"),
    ({"probes": {"readiness": {"perodSeconds": 1}}}, "perodSeconds"),
    ({"keda": {"workers": [{"name": "a", "target": "a", "queue": "q", "targetReady": 1, "queues": "q"}]}}, "queues"),
    ({"podLabels": {"app.kubernetes.io/name": "x"}}, "app.kubernetes.io/name"),
]


@pytest.mark.parametrize(("values", "name"), UNKNOWN, ids=[f"{name}-{n}" for n, (_, name) in enumerate(UNKNOWN)])
def test_an_unknown_name_is_refused(work, values, name):
    text = refused(work, merged(EXTERNAL, values))
    assert "schema" in text and name in text, text


WRONG = [
    {"replicas": 0}, {"replicas": "two"}, {"image": {"digest": "sha256:abc"}}, {"migrations": {"mode": "always"}},
    {"database": {"mode": "postgres"}}, {"tls": {"mode": "on"}}, {"ports": {"grpc": 80}}, {"preStopSeconds": -1},
    {"config": {"lanes": {"count": "many"}}}, {"config": {"server": {"drain_timeout": "25"}}}, {"config": {"log_level": "loud"}},
    {"config": {"limits": {"payload_bytes": "1 MB"}}}, {"service": {"type": "ExternalName"}},
    {"keda": {"workers": [{"name": "a", "target": "a", "queue": "q"}]}}, {"commonLabels": {"a": 1}},
    {"config": {"server": {"drain_timeout": "1m30s"}}}, {"ports": {"address": "127.0.0.1"}}, {"updateStrategy": {"type": "OnDelete"}},
    {"service": {"ipFamilies": ["IPv5"]}}, {"service": {"ipFamilyPolicy": "DualStack"}}, {"nameOverride": "a b"},
]


@pytest.mark.parametrize("values", WRONG, ids=range(len(WRONG)))
def test_a_value_of_the_wrong_kind_is_refused(work, values):
    assert "schema" in refused(work, merged(EXTERNAL, values))


SENSELESS = [
    ({}, "database.existingSecret.name: name the Secret"),
    (merged(EMBEDDED, {"replicas": 2}), "replicas: the embedded database serves one replica"),
    (merged(EMBEDDED, {"autoscaling": {"enabled": True}}), "the embedded database serves one replica"),
    (merged(EMBEDDED, {"keda": {"scaledObject": {"enabled": True}}}), "the embedded database serves one replica"),
    (merged(EXTERNAL, {"autoscaling": {"enabled": True}, "keda": {"scaledObject": {"enabled": True}}}), "enable one"),
    (merged(EXTERNAL, {"autoscaling": {"enabled": True, "minReplicas": 6}}), "autoscaling: minReplicas must not be larger"),
    (merged(EXTERNAL, {"keda": {"scaledObject": {"enabled": True, "maxReplicas": 1}}}), "keda.scaledObject: minReplicas must not"),
    (merged(EXTERNAL, {"terminationGracePeriodSeconds": 35}), "terminationGracePeriodSeconds: must be more than 35"),
    (merged(EXTERNAL, {"terminationGracePeriodSeconds": 60, "config": {"server": {"drain_timeout": "2m"}}}), "must be more than 130"),
    (merged(EXTERNAL, {"ports": {"http": 7070}}), "ports: grpc and http must be different"),
    (merged(EXTERNAL, {"service": {"httpPort": 7070}}), "service: port and httpPort must be different"),
    (merged(EXTERNAL, {"tls": {"mode": "sidecar"}}), "a sidecar needs extraContainers"),
    (merged(EXTERNAL, {"tls": {"mode": "sidecar"}, "probes": {"readinessProtocol": "grpc"},
                       "extraContainers": [{"name": "tls", "image": "x"}]}), "probes.readinessProtocol"),
    (merged(EXTERNAL, {"serviceMonitor": {"enabled": True}, "podMonitor": {"enabled": True}}), "count everything twice"),
    (merged(EXTERNAL, {"grpcRoute": {"enabled": True}}), "grpcRoute.parentRefs: name the gateway"),
    (merged(EXTERNAL, {"grpcRoute": {"envoyGateway": {"enabled": True}}}), "needs grpcRoute.enabled"),
    (merged(EXTERNAL, {"keda": {"workers": [{"name": "a", "target": "a", "queue": "q", "targetReady": 1}] * 2}}), "two of them are called a"),
    (merged(EXTERNAL, {"keda": {"scaledObject": {"enabled": True}, "workers": [
        {"name": "shop-leasehold", "target": "a", "queue": "q", "targetReady": 1}]}}), "the broker's own ScaledObject"),
    (merged(EXTERNAL, {"keda": {"workers": [
        {"name": "a", "target": "a", "queue": "q", "targetReady": 1, "minReplicas": 3, "maxReplicas": 2}]}}), "a larger minReplicas"),
    (merged(EXTERNAL, {"networkPolicy": {"enabled": True, "restrictEgress": True}}), "networkPolicy.egress: with restrictEgress"),
    (merged(EXTERNAL, {"networkPolicy": {"enabled": True}, "grpcRoute": {"enabled": True, "parentRefs": [{"name": "a"}]}}),
     "networkPolicy.gatewayFrom: say where"),
    (merged(EXTERNAL, {"migrations": {"mode": "startup", "existingSecret": {"name": "owner"}}}), "migrations.existingSecret: the Job alone"),
    (merged(EMBEDDED, {"migrations": {"existingSecret": {"name": "owner"}}}), "migrations.existingSecret: the Job alone"),
    (merged(EXTERNAL, {"extraEnv": [{"name": "LEASEHOLD_SERVER_DRAIN_TIMEOUT", "value": "10m"}]}), "config.server.drain_timeout"),
    (merged(EXTERNAL, {"extraEnv": [{"name": "LEASEHOLD_LISTEN", "value": "0.0.0.0:1"}]}), "LEASEHOLD_LISTEN is set by the chart"),
    (merged(EXTERNAL, {"fullnameOverride": "Queues"}), "fullnameOverride: Services' names"),
]


@pytest.mark.parametrize(("values", "why"), SENSELESS, ids=range(len(SENSELESS)))
def test_what_makes_no_sense_together_is_refused_with_a_reason(work, values, why):
    assert why in refused(work, values)


def test_all_faults_are_told_at_once(work):
    text = refused(work, {"replicas": 2, "ports": {"http": 7070}, "terminationGracePeriodSeconds": 1})
    assert "have 3 faults" in text, text


def test_the_shortest_grace_period_that_is_long_enough_is_let_through(work):
    for drain, grace in (("25s", 36), ("24500ms", 36), ("2m", 131), (None, 36)):
        values = merged(EXTERNAL, {"terminationGracePeriodSeconds": grace, "config": {"server": {"drain_timeout": drain}}})
        assert answer(work, values).returncode == 0
        assert f"must be more than {grace - 1}" in refused(work, merged(values, {"terminationGracePeriodSeconds": grace - 1}))
