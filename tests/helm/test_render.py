"""What the chart renders to, for each file of values: Helm's own checks, and the text as it was when somebody last looked at it."""

import os
import re

import pytest
import yaml

from harness.chart import CHART, KUBERNETES, ROOT, VALUES, documents, helm, rendered, template

GOLDEN = ROOT / "tests/helm/golden"
VERSION = yaml.safe_load((CHART / "Chart.yaml").read_text())["version"]
UPGRADES = ["minimal", "production", "embedded", "gitops"]
CASES = [(path.stem, path, ()) for path in VALUES] + [
    (f"{stem}-upgrade", CHART / f"ci/{stem}.yaml", ("--is-upgrade",)) for stem in UPGRADES]
EACH = pytest.mark.parametrize("path", VALUES, ids=lambda path: path.stem)


def for_reading(text):
    """What is kept: without the dashboards, which are files of their own, without the version in every label and
    what is summed over it, and without empty lines,
    which are not the same in all versions of Helm."""
    text = re.sub(r"(?m)^(  leasehold-\w+\.json: \|\n)(    .*\n)+", r"\1    (the file of dashboards)\n", text)
    text = re.sub(r"(?m)^(\s*helm.sh/chart: leasehold-).*$", r"\1VERSION", text)
    text = re.sub(r"(?m)^(\s*app.kubernetes.io/version: ).*$", r"\1VERSION", text)
    text = re.sub(r"(-migrate-)[0-9a-f]{8}\b", r"\1HASH", text)
    return "\n".join(line.rstrip() for line in text.splitlines() if line.strip()).replace(f"leasehold:{VERSION}", "leasehold:VERSION") + "\n"


def test_there_are_at_least_eight_files_of_values():
    assert len(VALUES) >= 8


@EACH
def test_strict_lint_has_nothing_to_say(path):
    answer = helm("lint", "--strict", CHART, *KUBERNETES, "--values", path)
    assert answer.returncode == 0 and "1 chart(s) linted, 0 chart(s) failed" in answer.stdout, answer.stdout + answer.stderr
    assert "WARNING" not in answer.stdout and "ERROR" not in answer.stdout, answer.stdout


@pytest.mark.parametrize(("name", "path", "arguments"), CASES, ids=[name for name, *_ in CASES])
def test_the_rendered_text_is_the_one_that_was_looked_at(name, path, arguments):
    text, golden = for_reading(rendered(path, *arguments)), GOLDEN / f"{name}.yaml"
    if os.environ.get("LEASEHOLD_TEST_UPDATE_SNAPSHOTS"):
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(text)
    assert golden.exists(), f"{golden.name} is missing: LEASEHOLD_TEST_UPDATE_SNAPSHOTS=1 ./test helm writes it"
    assert text == golden.read_text(), "where this is wanted, LEASEHOLD_TEST_UPDATE_SNAPSHOTS=1 ./test helm writes it anew"


def test_no_text_is_kept_that_nothing_renders_to():
    assert {path.stem for path in GOLDEN.glob("*.yaml")} == {name for name, *_ in CASES}


@EACH
def test_no_two_documents_have_one_name(path):
    names = [(document["kind"], document["metadata"]["name"]) for document in documents(path)]
    assert len(names) == len(set(names)) > 3


@EACH
def test_rendering_twice_makes_the_same_text(path):
    assert template(path).stdout == rendered(path)


def test_the_chart_packs_without_what_only_tests_need(work):
    import tarfile
    answer = helm("package", CHART, "--destination", work)
    assert answer.returncode == 0, answer.stderr
    with tarfile.open(next(work.glob("*.tgz"))) as archive:
        names = archive.getnames()
    assert "leasehold/templates/deployment.yaml" in names and "leasehold/alerts/leasehold.yaml" in names
    assert not [name for name in names if "/ci/" in name or name.endswith(".test.yaml")]


def test_notes_tell_the_next_command():
    answer = helm("install", "shop", CHART, "--namespace", "queues", "--dry-run=client", "--values", CHART / "ci/minimal.yaml")
    assert answer.returncode == 0, answer.stderr
    for command in ["kubectl --namespace queues rollout status deployment/shop-leasehold", "helm test shop --namespace queues",
                    "shop-leasehold.queues.svc:7070", "dns:///shop-leasehold-headless.queues.svc:7070",
                    "leasehold ping --address"]:
        assert command in answer.stdout, command
