"""The chart, rendered by Helm, and the schemas that its documents are held against."""

import os
import subprocess
from functools import cache
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "helm/leasehold"
VALUES = sorted((CHART / "ci").glob("*.yaml"))
RELEASE, NAMESPACE = "shop", "queues"
# A Helm that is built from its module takes another one for given.
KUBERNETES = ("--kube-version", "1.36.0")


def needed(name):
    value = os.environ.get(name)
    assert value, f"{name} is not set: run these tests by ./test helm"
    return value


def helm(*arguments):
    """What Helm answers: a finished process."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("LEASEHOLD_")}
    return subprocess.run([needed("LEASEHOLD_TEST_HELM"), *map(str, arguments)], text=True, capture_output=True, timeout=110,
                          stdin=subprocess.DEVNULL, env=environment, check=False)


def template(values, *arguments, release=RELEASE):
    """Helm's answer to `helm template` with the values of a file, or of a text of YAML."""
    base = ["template", release, CHART, "--namespace", NAMESPACE, *KUBERNETES, *arguments]
    return helm(*base, "--values", values)


@cache
def rendered(values, *arguments):
    """The text that values make."""
    answer = template(values, *arguments)
    assert answer.returncode == 0, answer.stderr
    return answer.stdout


def documents(values, *arguments):
    """The documents that values make."""
    return [document for document in yaml.safe_load_all(rendered(values, *arguments)) if document]


def of_kind(kind, values, *arguments):
    """Those of one kind."""
    return [document for document in documents(values, *arguments) if document["kind"] == kind]


def component(document):
    """What part of the release it belongs to."""
    return document["metadata"].get("labels", {}).get("app.kubernetes.io/component")


def pods(values, *arguments):
    """(document, pod's specification) of all that runs."""
    for document in documents(values, *arguments):
        if document["kind"] == "Pod":
            yield document, document["spec"]
        elif document["kind"] in ("Deployment", "Job"):
            yield document, document["spec"]["template"]["spec"]


def deployment(values, *arguments):
    """The broker's Deployment."""
    (found,) = of_kind("Deployment", values, *arguments)
    return found


def broker(values, *arguments):
    """The broker's container."""
    (found,) = [one for one in deployment(values, *arguments)["spec"]["template"]["spec"]["containers"] if one["name"] == "broker"]
    return found


@cache
def custom_schemas():
    """The schemas of kinds that are not Kubernetes' own, from their definitions: by (apiVersion, kind)."""
    schemas = {}
    for path in needed("LEASEHOLD_TEST_CRDS").split(":"):
        for document in yaml.load_all(Path(path).read_text(), getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
            if not document or document.get("kind") != "CustomResourceDefinition":
                continue
            spec = document["spec"]
            for version in spec["versions"]:
                key = (f"{spec['group']}/{version['name']}", spec["names"]["kind"])
                schemas[key] = closed(version["schema"]["openAPIV3Schema"])
    return schemas


def closed(schema):
    """The same schema, and what it does not name is refused, as the API server does where it is told to be strict."""
    if not isinstance(schema, dict):
        return schema
    schema = {**schema}
    if schema.get("x-kubernetes-int-or-string"):
        return {"type": ["integer", "string"]}
    if "properties" in schema:
        schema["properties"] = {name: closed(of) for name, of in schema["properties"].items()}
        if "additionalProperties" not in schema and not schema.get("x-kubernetes-preserve-unknown-fields"):
            schema["additionalProperties"] = False
    elif isinstance(schema.get("additionalProperties"), dict):
        schema["additionalProperties"] = closed(schema["additionalProperties"])
    if "pattern" in schema:
        # Go lets flags stand behind the anchor
        schema["pattern"] = schema["pattern"].replace("^(?i)", "(?i)^")
    if "items" in schema:
        schema["items"] = closed(schema["items"])
    return schema
