"""What is made from something else is current, and there is one source of everything."""

import importlib.util
import json
import re

import pytest
import yaml

from harness.chart import CHART, ROOT, VALUES, of_kind
from harness.prometheus import ALERTS, DASHBOARDS

PRODUCTION = CHART / "ci/production.yaml"


@pytest.fixture(scope="module")
def document():
    """helm/document.py."""
    spec = importlib.util.spec_from_file_location("document", ROOT / "helm/document.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_schema_and_readme_are_current(document):
    stale = [path.name for path, text in document.made().items() if path.read_text() != text]
    assert stale == [], "run helm/document.py"


def test_every_value_has_a_line_of_its_own(document):
    def leaves(tree, path=()):
        for name, value in tree.items():
            yield (*path, name)
            if isinstance(value, dict):
                yield from leaves(value, (*path, name))
    said = {tuple(value.path) for value in document.read_values((CHART / "values.yaml").read_text())}
    parents = {path[:n] for path in said for n in range(1, len(path))}
    known = said | parents
    forgotten = [path for path in leaves(yaml.safe_load((CHART / "values.yaml").read_text()))
                 if path not in known and not any(path[:n] in said for n in range(1, len(path)))]
    assert forgotten == []


def test_every_option_of_the_broker_may_be_given_but_those_that_the_chart_keeps(document):
    properties = json.loads((CHART / "values.schema.json").read_text())["properties"]["config"]["properties"]
    for section, name, _ in document.read_options((ROOT / "docs/configuration.md").read_text()):
        key = f"{section}.{name}" if section else name
        if section == "callers.NAME":
            assert name in properties["callers"]["additionalProperties"]["properties"]
        elif section:
            assert (name in properties[section]["properties"]) == (key not in document.NOT_FOR_THE_FILE), key
        else:
            assert (name in properties) == (key not in document.NOT_FOR_THE_FILE), key


def test_the_dashboards_are_the_files_of_the_chart():
    shown = {}
    for one in of_kind("ConfigMap", PRODUCTION):
        if one["metadata"]["labels"].get("grafana_dashboard") == "1":
            shown |= one["data"]
    assert shown.keys() == {f"leasehold-{path.name}" for path in DASHBOARDS}
    for path in DASHBOARDS:
        assert json.loads(shown[f"leasehold-{path.name}"]) == json.loads(path.read_text())


def test_the_alerts_are_the_file_of_the_chart():
    (rule,) = of_kind("PrometheusRule", PRODUCTION)
    text = (ALERTS / "leasehold.yaml").read_text().replace("runbook_url: docs/", "runbook_url: https://runbooks.example.com/leasehold/docs/")
    assert rule["spec"] == yaml.safe_load(text)
    runbooks = (ROOT / "docs/operations.md").read_text()
    for one in rule["spec"]["groups"][0]["rules"]:
        anchor = one["annotations"]["runbook_url"].split("#")[1]
        assert anchor in [re.sub(r"[^a-z0-9 -]", "", title.lower()).replace(" ", "-")
                          for title in re.findall(r"^#+ (.*)$", runbooks, re.M)], anchor


def test_the_chart_has_the_version_that_the_changelog_is_about():
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    newest = re.search(r"^## (\d+\.\d+\.\d+)", (ROOT / "CHANGELOG.md").read_text(), re.M).group(1)
    assert chart["version"] == chart["appVersion"] == newest


def test_the_readme_names_no_file_that_is_not_there():
    text = (CHART / "README.md").read_text()
    named = set(re.findall(r"`(?:helm/leasehold/)?(ci/[a-z-]+\.yaml)`", text))
    assert named and all((CHART / name) in VALUES for name in named)
