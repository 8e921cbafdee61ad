"""Rules of ours for what runs in a cluster."""

import re

import pytest

from harness.chart import VALUES, broker, component, deployment, documents, of_kind, pods, rendered

CASES = [(path, arguments) for path in VALUES for arguments in ((), ("--is-upgrade",))]
EACH = pytest.mark.parametrize(("path", "arguments"), CASES, ids=[f"{path.stem}{''.join(arguments)}" for path, arguments in CASES])
BY_NAME = {path.stem: path for path in VALUES}


def containers(spec):
    return [*spec.get("initContainers", []), *spec["containers"]]


def selector(document):
    return document["spec"]["selector"].get("matchLabels") or document["spec"]["selector"]


def selects(wanted, labels):
    return wanted.items() <= labels.items()


@EACH
def test_every_pod_meets_the_restricted_standard_on_a_read_only_root(path, arguments):
    for _, spec in pods(path, *arguments):
        assert spec["securityContext"]["runAsNonRoot"] is True and spec["securityContext"]["runAsUser"] == 65532
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert not {"hostNetwork", "hostPID", "hostIPC"} & spec.keys()
        for one in containers(spec):
            context = one["securityContext"]
            assert context["allowPrivilegeEscalation"] is False and context["readOnlyRootFilesystem"] is True, one["name"]
            assert context["capabilities"] == {"drop": ["ALL"]} and not context.get("privileged"), one["name"]
        assert not [volume for volume in spec.get("volumes", []) if "hostPath" in volume]


@EACH
def test_no_token_of_a_service_account_is_mounted(path, arguments):
    assert all(spec["automountServiceAccountToken"] is False for _, spec in pods(path, *arguments))
    assert all(account["automountServiceAccountToken"] is False for account in of_kind("ServiceAccount", path, *arguments))


@EACH
def test_every_container_says_what_it_needs_and_what_memory_it_may_take(path, arguments):
    for _, spec in pods(path, *arguments):
        for one in containers(spec):
            assert one["resources"]["requests"].keys() >= {"cpu", "memory"} and one["resources"]["limits"]["memory"], one["name"]


@EACH
def test_variables_of_services_are_not_put_into_pods(path, arguments):
    assert all(spec["enableServiceLinks"] is False for _, spec in pods(path, *arguments))


@EACH
def test_everything_has_the_labels_that_kubernetes_recommends(path, arguments):
    for document in documents(path, *arguments):
        if document["metadata"]["name"] in ("queue", "shop-leasehold-address"):
            continue  # those of extraObjects
        labels = document["metadata"]["labels"]
        for name in ("name", "instance", "version", "component", "part-of", "managed-by"):
            assert labels[f"app.kubernetes.io/{name}"], document["metadata"]["name"]
        assert document["metadata"]["namespace"] == "queues"


@EACH
def test_liveness_asks_the_second_port_and_readiness_asks_as_clients_do(path, arguments):
    container = broker(path, *arguments)
    for probe in ("startupProbe", "livenessProbe"):
        assert container[probe]["httpGet"] == {"path": "/livez", "port": "http"}
    plain = path.stem not in ("tls-mesh", "mesh-native", "tls-sidecar")
    port = next(port["containerPort"] for port in container["ports"] if port["name"] == "grpc")
    asked = {"grpc": {"port": port}} if plain else {"httpGet": {"path": "/readyz", "port": "http"}}
    assert asked.items() <= container["readinessProbe"].items()


@EACH
def test_the_grace_period_is_longer_than_the_drain_and_five_seconds(path, arguments):
    spec = deployment(path, *arguments)["spec"]["template"]["spec"]
    pause = broker(path, *arguments)["lifecycle"]["preStop"]["sleep"]["seconds"]
    number, unit = re.search(r'drain_timeout = "(\d+)([a-z]+)"', rendered(path, *arguments)).groups()
    drain = int(number) * {"s": 1, "m": 60}[unit]
    assert spec["terminationGracePeriodSeconds"] > pause + drain + 5


@EACH
def test_a_disruption_budget_is_there_exactly_where_there_are_several_replicas(path, arguments):
    scalers = of_kind("HorizontalPodAutoscaler", path, *arguments) + [
        one for one in of_kind("ScaledObject", path, *arguments) if component(one) == "broker"]
    spec = deployment(path, *arguments)["spec"]
    fewest = spec.get("replicas") or scalers[0]["spec"].get("minReplicas") or scalers[0]["spec"]["minReplicaCount"]
    budgets = of_kind("PodDisruptionBudget", path, *arguments)
    assert [budget["spec"]["maxUnavailable"] for budget in budgets] == ([1] if fewest > 1 else [])
    assert bool(scalers) == ("replicas" not in spec)


@EACH
def test_selectors_find_the_brokers_pods_and_no_others(path, arguments):
    labels = deployment(path, *arguments)["spec"]["template"]["metadata"]["labels"]
    others = [document["metadata"]["labels"] if document["kind"] == "Pod" else document["spec"]["template"]["metadata"]["labels"]
              for document, _ in pods(path, *arguments) if document["kind"] != "Deployment"]
    wanted = [selector(one) for kind in ("Deployment", "Service", "PodDisruptionBudget", "PodMonitor")
              for one in of_kind(kind, path, *arguments) if one["metadata"]["name"] != "queue"]
    wanted += [one["spec"]["podSelector"]["matchLabels"] for one in of_kind("NetworkPolicy", path, *arguments) if component(one) == "broker"]
    spec = deployment(path, *arguments)["spec"]["template"]["spec"]
    wanted += [one["labelSelector"]["matchLabels"] for one in spec["topologySpreadConstraints"]]
    assert len(wanted) >= 3
    for one in wanted:
        assert selects(one, labels) and not [other for other in others if selects(one, other)]


@EACH
def test_no_secret_is_made_or_stands_in_a_config_map(path, arguments):
    assert not of_kind("Secret", path, *arguments)
    for document in of_kind("ConfigMap", path, *arguments):
        text = "\n".join(document["data"].values())
        assert not re.search(r"password|://[^/\s\"]+:[^@\s\"]+@|^database_url =|otlp_headers", text, re.M | re.I)
    embedded = path.stem.startswith("embedded")
    for document, spec in pods(path, *arguments):
        if document["kind"] != "Pod":
            secrets = [volume["secret"] for volume in spec["volumes"] if volume["name"] == "database"]
            assert [one["defaultMode"] for one in secrets] == ([] if embedded else [0o440])


@EACH
def test_every_mount_has_a_volume_and_every_volume_of_the_chart_is_mounted(path, arguments):
    for _, spec in pods(path, *arguments):
        there = {volume["name"] for volume in spec.get("volumes", [])}
        mounted = {mount["name"] for one in containers(spec) for mount in one.get("volumeMounts", [])}
        assert mounted <= there and there - mounted <= {"envoy", "certificate"}, "the Job has extraVolumes, and not the sidecar"


@EACH
def test_the_embedded_database_has_one_replica_a_volume_and_no_second_process(path, arguments):
    spec = deployment(path, *arguments)["spec"]
    if not path.stem.startswith("embedded"):
        assert spec["strategy"]["type"] in ("RollingUpdate", "Recreate") and not of_kind("PersistentVolumeClaim", path, *arguments)
        assert ("rollingUpdate" in spec["strategy"]) == (spec["strategy"]["type"] == "RollingUpdate"), "the API refuses both together"
        return
    assert spec["replicas"] == 1 and spec["strategy"] == {"type": "Recreate"}
    (volume,) = [volume for volume in spec["template"]["spec"]["volumes"] if volume["name"] == "data"]
    made = [claim["metadata"]["name"] for claim in of_kind("PersistentVolumeClaim", path, *arguments)]
    assert made == ([] if path.stem == "embedded-claim" else [volume["persistentVolumeClaim"]["claimName"]])
    assert not of_kind("Job", path, *arguments)


def test_a_change_of_the_configuration_rolls_the_pods():
    def sum_of(name):
        return deployment(BY_NAME[name])["spec"]["template"]["metadata"]["annotations"]["checksum/config"]
    assert len({sum_of(name) for name in ("minimal", "production", "embedded", "names")}) == 4


def test_the_headless_service_names_the_ports_that_pods_have():
    for name, port in (("names", 9090), ("tls-sidecar", 7443), ("minimal", 7070)):
        (service,) = [one for one in of_kind("Service", BY_NAME[name]) if component(one) == "headless"]
        assert service["spec"]["clusterIP"] == "None" and service["spec"]["ports"][0]["port"] == port


def test_a_service_monitor_finds_one_of_the_two_services():
    (monitor,) = of_kind("ServiceMonitor", BY_NAME["production"])
    found = [one for one in of_kind("Service", BY_NAME["production"]) if selects(selector(monitor), one["metadata"]["labels"])]
    assert len(found) == 1 and monitor["spec"]["endpoints"][0]["port"] in {port["name"] for port in found[0]["spec"]["ports"]}


def test_keda_asks_the_broker_about_the_queue():
    first, second = [one for one in of_kind("ScaledObject", BY_NAME["keda"]) if component(one) == "workers"]
    (trigger,) = first["spec"]["triggers"]
    assert trigger["type"] == "external-push" and first["spec"]["minReplicaCount"] == 0
    assert trigger["metadata"] == {"scalerAddress": "shop-leasehold.queues.svc:7070", "queue": "mail", "targetReady": "20",
                                   "targetAgeSeconds": "30"}
    (trigger,) = second["spec"]["triggers"]
    assert trigger["type"] == "external" and trigger["metadata"]["targetReady"] == "0.5"
    assert second["spec"]["cooldownPeriod"] == 0, "none is not what KEDA takes where nothing is said"
    (policy,) = [one for one in of_kind("NetworkPolicy", BY_NAME["keda"]) if component(one) == "broker"]
    assert {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "autoscaling"}}} in policy["spec"]["ingress"][0]["from"]


def test_envoy_lets_streams_live():
    (policy,) = of_kind("BackendTrafficPolicy", BY_NAME["gateway"])
    http = policy["spec"]["timeout"]["http"]
    assert http["requestTimeout"] == http["maxStreamDuration"] == "0s" and http["streamIdleTimeout"] == "2m"
