"""Pods that come to an end, who may call whom, and addresses of both families."""

import pytest
import yaml

from harness.chart import VALUES, component, deployment, documents, of_kind, pods, template

CASES = [(path, arguments) for path in VALUES for arguments in ((), ("--is-upgrade",))]
EACH = pytest.mark.parametrize(("path", "arguments"), CASES, ids=[f"{path.stem}{''.join(arguments)}" for path, arguments in CASES])
BY_NAME = {path.stem: path for path in VALUES}
ISTIO, LINKERD = "sidecar.istio.io/inject", "linkerd.io/inject"


def ending(path, *arguments):
    """Metadata and specification of the pods of the migration and of `helm test`, by component."""
    found = {}
    for one in documents(path, *arguments):
        if one["kind"] in ("Job", "Pod"):
            pod = one["spec"]["template"] if one["kind"] == "Job" else one
            found[component(one)] = pod["metadata"], pod["spec"]
    return found


def changed(work, name, **more):
    """A file of values with further ones."""
    path = work / "values.yaml"
    path.write_text(yaml.safe_dump({**yaml.safe_load(BY_NAME[name].read_text()), **more}))
    return path


@pytest.mark.parametrize("arguments", [(), ("--is-upgrade",)])
def test_a_meshs_ordinary_sidecar_is_kept_out_of_pods_that_come_to_an_end(arguments):
    left_out = ending(BY_NAME["tls-mesh"], *arguments)
    assert left_out.keys() == {"migration", "test"}
    for metadata, _ in left_out.values():
        assert metadata["labels"][ISTIO] == metadata["annotations"][ISTIO] == "false"
        assert metadata["annotations"][LINKERD] == "disabled"
    broker = deployment(BY_NAME["tls-mesh"], *arguments)["spec"]["template"]["metadata"]
    assert broker["labels"][ISTIO] == "true" and LINKERD not in broker["annotations"]
    for name in ("mesh-native", "minimal"):
        for metadata, _ in ending(BY_NAME[name], *arguments).values():
            assert ISTIO not in metadata["labels"] and metadata.get("annotations", {}).get(LINKERD) != "disabled"


def test_what_is_given_for_one_pod_wins_over_what_is_given_for_all(work):
    path = changed(work, "tls-mesh", migrations={"podLabels": {ISTIO: "true"}, "podAnnotations": {LINKERD: "enabled"}})
    metadata, _ = ending(path)["migration"]
    assert metadata["labels"][ISTIO] == "true" and metadata["annotations"][LINKERD] == "enabled"
    metadata, _ = ending(path)["test"]
    assert metadata["labels"][ISTIO] == "false"


def test_the_migration_has_sidecars_of_its_own_and_no_container_that_would_keep_it():
    for arguments in ((), ("--is-upgrade",)):
        metadata, spec = ending(BY_NAME["mesh-native"], *arguments)["migration"]
        (proxy,) = spec["initContainers"]
        assert proxy["restartPolicy"] == "Always" and [one["name"] for one in spec["containers"]] == ["migrate"]
        assert metadata["labels"]["step"] == metadata["annotations"]["example.com/step"] == "schema"
        assert spec["serviceAccountName"] == "queues-owner"
        _, spec = ending(BY_NAME["tls-sidecar"], *arguments)["migration"]
        assert [one["name"] for one in spec["containers"]] == ["migrate"]


@EACH
def test_all_pods_may_run_on_the_same_nodes(path, arguments):
    placed = [{key: spec.get(key) for key in ("affinity", "nodeSelector", "tolerations", "priorityClassName")}
              for _, spec in pods(path, *arguments)]
    assert all(one == placed[0] for one in placed)


@EACH
def test_a_policy_covers_each_kind_of_pod(path, arguments):
    policies = of_kind("NetworkPolicy", path, *arguments)
    assert sorted(component(one) for one in policies) in ([], ["broker", "migration", "test"])
    for one in policies:
        assert one["spec"]["podSelector"]["matchLabels"]["app.kubernetes.io/component"] == component(one)
        assert "Ingress" in one["spec"]["policyTypes"] and bool(one["spec"].get("ingress")) == (component(one) == "broker")
        assert ("Egress" in one["spec"]["policyTypes"]) == ("egress" in one["spec"])


def test_what_restricts_the_brokers_calls_lets_migrations_and_the_test_do_theirs():
    egress = {component(one): one["spec"]["egress"] for one in of_kind("NetworkPolicy", BY_NAME["mesh-native"])}
    names = {"ports": [{"port": 53, "protocol": "UDP"}, {"port": 53, "protocol": "TCP"}]}
    database = {"to": [{"ipBlock": {"cidr": "10.30.0.0/16"}}], "ports": [{"port": 5432, "protocol": "TCP"}]}
    assert egress["broker"] == egress["migration"] == [names, database]
    labels = deployment(BY_NAME["mesh-native"])["spec"]["template"]["metadata"]["labels"]
    (call,) = egress["test"][1:]
    assert call["ports"] == [{"port": 7070, "protocol": "TCP"}]
    assert call["to"][0]["podSelector"]["matchLabels"].items() <= labels.items()


def test_the_gateway_is_let_through_to_grpc_alone():
    (policy,) = [one for one in of_kind("NetworkPolicy", BY_NAME["gateway"]) if component(one) == "broker"]
    gateway = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "envoy-gateway-system"}}}
    grpc, http = policy["spec"]["ingress"]
    assert gateway in grpc["from"] and gateway not in http["from"]


@EACH
def test_labels_are_texts_whatever_they_look_like(path, arguments):
    for one in documents(path, *arguments):
        assert all(isinstance(value, str) for value in one["metadata"].get("labels", {}).values())


def test_services_say_which_families_of_addresses_they_have_where_that_is_asked_for():
    for one in of_kind("Service", BY_NAME["gateway"]):
        assert one["spec"]["ipFamilyPolicy"] == "PreferDualStack" and one["spec"]["ipFamilies"] == ["IPv6", "IPv4"]
    for one in of_kind("Service", BY_NAME["minimal"]):
        assert not {"ipFamilyPolicy", "ipFamilies"} & one["spec"].keys()


def test_a_release_whose_name_has_dots_makes_names_that_services_may_have():
    answer = template(BY_NAME["minimal"], release="shop.eu")
    assert answer.returncode == 0, answer.stderr
    made = [one for one in yaml.safe_load_all(answer.stdout) if one]
    assert {one["metadata"]["name"] for one in made if one["kind"] == "Service"} == {"shop-eu-leasehold", "shop-eu-leasehold-headless"}
    assert {one["metadata"]["labels"]["app.kubernetes.io/instance"] for one in made} == {"shop.eu"}


def test_a_release_whose_name_begins_with_a_digit_is_told_what_to_do():
    answer = template(BY_NAME["minimal"], release="1shop")
    assert answer.returncode != 0 and "fullnameOverride: Services' names" in answer.stderr
    answer = template(BY_NAME["minimal"], "--set", "fullnameOverride=shop", release="1")
    assert answer.returncode == 0, answer.stderr
