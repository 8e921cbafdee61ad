"""Migrations: before anything else on an upgrade, beside everything else where no hook can be."""

import copy

import pytest
import yaml

from harness.chart import CHART, VALUES, documents, of_kind, rendered

BY_NAME = {path.stem: path for path in VALUES}
HOOK = "helm.sh/hook"


def hooks(name):
    return [one for one in documents(BY_NAME[name], "--is-upgrade") if HOOK in one["metadata"].get("annotations", {})
            and one["metadata"]["annotations"][HOOK] != "test"]


def test_an_install_has_a_job_among_the_other_objects():
    (job,) = of_kind("Job", BY_NAME["production"])
    assert HOOK not in job["metadata"].get("annotations", {})
    (container,) = job["spec"]["template"]["spec"]["containers"]
    assert container["args"][:2] == ["migrate", "up"]
    volumes = {volume["name"]: volume for volume in job["spec"]["template"]["spec"]["volumes"]}
    assert volumes["database"]["secret"]["secretName"] == "leasehold-owner"


@pytest.mark.parametrize("name", ["minimal", "production"])
def test_an_upgrade_has_a_hook_that_needs_nothing_of_the_release_before(name):
    made = hooks(name)
    (job,) = [one for one in made if one["kind"] == "Job"]
    spec = job["spec"]["template"]["spec"]
    earlier = {(one["kind"], one["metadata"]["name"]): int(one["metadata"]["annotations"]["helm.sh/hook-weight"]) for one in made}
    weight = earlier.pop(("Job", job["metadata"]["name"]))
    config = next(volume["configMap"]["name"] for volume in spec["volumes"] if volume["name"] == "config")
    assert set(earlier) == {("ConfigMap", config)}
    installed = {one["metadata"]["name"] for one in of_kind("ServiceAccount", BY_NAME[name])}
    assert spec["serviceAccountName"] in installed, "the one that the database or a cloud may know, there since the install"
    assert all(one < weight for one in earlier.values())
    assert all(one["metadata"]["annotations"][HOOK] == "pre-upgrade" for one in made)
    assert all("before-hook-creation" in one["metadata"]["annotations"]["helm.sh/hook-delete-policy"] for one in made)
    assert spec["restartPolicy"] == "Never", "a pod that failed is kept for its log"


def test_a_hook_uses_a_service_account_that_the_chart_does_not_make(work):
    path = work / "values.yaml"
    path.write_text(yaml.safe_dump({**yaml.safe_load(BY_NAME["minimal"].read_text()), "serviceAccount": {"create": False, "name": "queues"}}))
    (job,) = of_kind("Job", path, "--is-upgrade")
    assert job["spec"]["template"]["spec"]["serviceAccountName"] == "queues" and not of_kind("ServiceAccount", path, "--is-upgrade")


def test_a_hook_migrates_with_the_configuration_of_the_new_version():
    (of_hook,) = [one for one in hooks("production") if one["kind"] == "ConfigMap"]
    of_release = next(one for one in of_kind("ConfigMap", BY_NAME["production"], "--is-upgrade") if one["metadata"]["name"] == "shop-leasehold")
    assert of_hook["data"] == of_release["data"]


def test_no_object_of_the_release_has_a_hooks_name():
    names = [(one["kind"], one["metadata"]["name"]) for one in documents(BY_NAME["production"], "--is-upgrade")]
    assert len(names) == len(set(names))


def test_without_hooks_a_job_whose_content_changes_gets_another_name(work):
    values = yaml.safe_load(BY_NAME["gitops"].read_text())
    names = set()
    for change in ({}, {"image": {"tag": "9"}}, {"config": {"database_schema": "jobs"}}, {"podLabels": {"a": "b"}}):
        path = work / f"{len(names)}.yaml"
        path.write_text(yaml.safe_dump({**copy.deepcopy(values), **change}))
        (job,) = of_kind("Job", path, "--is-upgrade")
        names.add(job["metadata"]["name"])
        assert job["metadata"]["annotations"] == {"argocd.argoproj.io/sync-wave": "-1"}
    assert len(names) == 4
    assert rendered(BY_NAME["gitops"]).replace("\n", "") == rendered(BY_NAME["gitops"], "--is-upgrade").replace("\n", "")


def test_startup_lets_brokers_migrate_and_none_lets_nobody():
    for name, migrate in (("mysql-startup", "migrate = true"), ("names", "migrate = false")):
        assert not of_kind("Job", BY_NAME[name]) and not of_kind("Job", BY_NAME[name], "--is-upgrade")
        assert migrate in of_kind("ConfigMap", BY_NAME[name])[0]["data"]["leasehold.toml"]
    assert "migrate = true" not in rendered(CHART / "ci/minimal.yaml")
