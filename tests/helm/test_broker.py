"""The chart against the broker itself: its configuration is one that the program takes, and the commands of its pods work."""

import os
import re
import subprocess
import tomllib
import urllib.request

import pytest

from harness.calls import eventually
from harness.chart import CHART, ROOT, VALUES, broker, of_kind
from harness.cluster import free_port

EACH = pytest.mark.parametrize("path", VALUES, ids=lambda path: path.stem)


def run(program, arguments, **variables):
    """The program with these arguments and no other setting."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("LEASEHOLD_")}
    return subprocess.run([program, *arguments], text=True, capture_output=True, timeout=100, stdin=subprocess.DEVNULL,
                          env=environment | variables, check=False)


def file_of(path):
    """The broker's file as the chart renders it."""
    name = next(volume["configMap"]["name"] for document in of_kind("Deployment", path)
                for volume in document["spec"]["template"]["spec"]["volumes"] if volume["name"] == "config")
    return next(document for document in of_kind("ConfigMap", path) if document["metadata"]["name"] == name)["data"]["leasehold.toml"]


def set_up(path, work):
    """The file and what it names, in a directory of the test's own: the file's path."""
    url = "mysql://u:p@db/app" if path.stem.startswith("mysql") else "postgres://u:p@db/app"
    (work / "url").write_text(url + "\n")
    text = file_of(path).replace("/etc/leasehold/database/url", str(work / "url")).replace("/var/lib/leasehold", str(work / "data"))
    (work / "leasehold.toml").write_text(text)
    return str(work / "leasehold.toml")


@EACH
def test_the_program_takes_the_configuration(program, work, path):
    checked = run(program, ["config", "check", "--config", set_up(path, work)])
    assert checked.returncode == 0, checked.stderr


@EACH
def test_what_the_values_say_is_what_holds(program, work, path):
    file = set_up(path, work)
    with open(file, "rb") as opened:
        said = tomllib.load(opened)
    printed = run(program, ["config", "print", "--config", file]).stdout
    for name, value in said.items():
        options = {f"{name}.{key}": of for key, of in value.items()} if isinstance(value, dict) else {name: value}
        for key, of in options.items():
            if not isinstance(of, dict):
                assert re.search(rf"^{re.escape(key)} .*leasehold\.toml", printed, re.M), f"{key} in {printed}"


def test_the_address_of_the_chart_takes_calls_of_both_families(program, work):
    text = file_of(CHART / "ci/embedded.yaml")
    assert 'listen = "[::]:7070"' in text and 'http_listen = "[::]:7071"' in text
    grpc, http = free_port(), free_port()
    text = text.replace(":7070", f":{grpc}").replace(":7071", f":{http}").replace("/var/lib/leasehold", str(work / "data"))
    (work / "leasehold.toml").write_text(text)
    environment = {k: v for k, v in os.environ.items() if not k.startswith("LEASEHOLD_")}
    serving = subprocess.Popen([program, "serve", "--config", str(work / "leasehold.toml")], env=environment, stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for host in ("127.0.0.1", "[::1]"):
            eventually(lambda: run(program, ["ping", "--address", f"http://{host}:{grpc}"]).returncode == 0, within=60, what=host)
            with urllib.request.urlopen(f"http://{host}:{http}/livez", timeout=30) as answer:
                assert answer.status == 200
    finally:
        serving.kill()
        serving.wait(20)


def test_an_option_that_the_program_does_not_know_is_noticed(program, work):
    file = set_up(VALUES[0], work)
    with open(file, "a") as opened:
        opened.write("\n[lanes]\ncuont = 3\n")
    checked = run(program, ["config", "check", "--config", file])
    assert checked.returncode == 64 and "lanes.cuont" in checked.stderr


@EACH
def test_the_arguments_of_the_brokers_container_start_it(path):
    assert broker(path)["args"] == ["serve", "--config", "/etc/leasehold/config/leasehold.toml"]


def test_the_pod_of_helm_test_enqueues_leases_acks_and_leaves_nothing_behind(brokers, program):
    for name, settings in (("minimal", {}), ("names", {"auto_create_queues": "false"})):
        serving = brokers(**settings)
        (pod,) = of_kind("Pod", CHART / f"ci/{name}.yaml")
        steps = [*pod["spec"]["initContainers"], *pod["spec"]["containers"]]
        for again in range(2):
            for step in steps:
                variables = {one["name"]: one["value"] for one in step["env"]}
                assert variables["LEASEHOLD_ADDRESS"].startswith("http://")
                ended = run(program, step["args"], **variables | {"LEASEHOLD_ADDRESS": f"http://127.0.0.1:{serving.port}"})
                assert ended.returncode == 0, (again, step["name"], ended.stderr)
                if step["name"] == "lease-and-ack":
                    assert "a job of helm test" in ended.stdout
        queues = run(program, ["queue", "list", "--json", "--address", f"http://127.0.0.1:{serving.port}"])
        assert queues.returncode == 0 and "helm-test" not in queues.stdout


def test_the_pod_of_helm_test_fails_where_the_broker_is_away(program):
    (pod,) = of_kind("Pod", CHART / "ci/minimal.yaml")
    ended = run(program, [*pod["spec"]["initContainers"][0]["args"], "--address", "http://127.0.0.1:1"])
    assert ended.returncode == 69, ended.stderr


def test_the_job_migrates_with_the_file_of_the_chart(program, work, request):
    file = set_up(CHART / "ci/minimal.yaml", work)
    (work / "url").write_text(f"sqlite://{work / 'jobs.db'}")
    (job,) = of_kind("Job", CHART / "ci/minimal.yaml")
    arguments = job["spec"]["template"]["spec"]["containers"][0]["args"]
    arguments = [file if argument.endswith(".toml") else argument for argument in arguments]
    first, second = run(program, arguments), run(program, arguments)
    assert first.returncode == 0 and "0001" in first.stdout, first.stderr
    assert second.returncode == 0 and "nothing to apply" in second.stderr, second.stderr


def test_defaults_that_templates_know_are_those_of_the_program():
    reference = (ROOT / "docs/configuration.md").read_text()
    for option, default in (("server.drain_timeout", "25s"), ("streams.heartbeat", "15s")):
        assert re.search(rf"^\| `{re.escape(option)}` \| `{default}` ", reference, re.M), option
