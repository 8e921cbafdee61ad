"""Every document against the schema of its kind: Kubernetes' own, and those of kinds that others define."""

import jsonschema
import kubernetes_validate
import pytest

from harness.chart import VALUES, closed, custom_schemas, documents

# The oldest version that the chart allows, and a new one.
VERSIONS = ["1.30", "1.36"]
OF_OTHERS = {"ServiceMonitor", "PodMonitor", "PrometheusRule", "ScaledObject", "GRPCRoute", "BackendTrafficPolicy"}
CASES = [(path, arguments) for path in VALUES for arguments in ((), ("--is-upgrade",))]
EACH = pytest.mark.parametrize(("path", "arguments"), CASES, ids=[f"{path.stem}{''.join(arguments)}" for path, arguments in CASES])


@EACH
@pytest.mark.parametrize("version", VERSIONS)
def test_kubernetes_own_kinds_are_as_it_defines_them(path, arguments, version):
    own = [document for document in documents(path, *arguments) if document["kind"] not in OF_OTHERS]
    assert len(own) >= 4
    for document in own:
        kubernetes_validate.validate(document, version, strict=True)


@pytest.mark.parametrize("path", VALUES, ids=lambda path: path.stem)
def test_kinds_of_others_are_as_they_define_them(path):
    for document in documents(path):
        if document["kind"] in OF_OTHERS:
            jsonschema.validate(document, custom_schemas()[document["apiVersion"], document["kind"]])


def test_every_kind_of_others_is_looked_at():
    assert {document["kind"] for path in VALUES for document in documents(path)} >= OF_OTHERS


def test_an_unknown_field_is_noticed():
    (pod,) = [document for document in documents(VALUES[0]) if document["kind"] == "Pod"]
    wrong = {**pod, "spec": {**pod["spec"], "automountToken": False}}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, VERSIONS[0], strict=True)
    route = next(document for path in VALUES for document in documents(path) if document["kind"] == "GRPCRoute")
    wrong = {**route, "spec": {**route["spec"], "timeouts": {"request": "0s"}}}
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(wrong, custom_schemas()[route["apiVersion"], "GRPCRoute"])
    assert closed({"properties": {"a": {"type": "string"}}})["additionalProperties"] is False
