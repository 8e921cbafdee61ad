"""The chart on a real Kubernetes API server: server-side apply of everything that it renders, then Helm's own installs and upgrades.

    cd tests && LEASEHOLD_TEST_HELM=… LEASEHOLD_TEST_CRDS=… ../.venv/bin/python -m harness.chart_on_server DIRECTORY

DIRECTORY has the programs etcd and kube-apiserver, as harness/kubernetes/build makes them. It is no part of ./test, since building them takes longer than all the rest. Fields
that no kind has are errors there, and so is any warning, those of the restricted standard for pods among them. There are no
controllers: what the one for Jobs would say of a migration is said here.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from harness.apiserver import ApiServer
from harness.chart import CHART, NAMESPACE, RELEASE, VALUES, documents, needed

RESTRICTED = {f"pod-security.kubernetes.io/{what}": "restricted" for what in ("enforce", "warn")}
NOW = "2030-01-01T00:00:00Z"
MINIMAL = CHART / "ci/minimal.yaml"


def there_already():
    """What the files of values take for given."""
    yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": RESTRICTED}}
    yield {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "business-critical"}, "value": 1000}


def apply_all(server):
    """Applies every document of every file of values; gives back how many were refused or warned of."""
    bad = 0
    for path in VALUES:
        for arguments in ((), ("--is-upgrade",)):
            made = documents(path, *arguments)
            faults = [(one, fault) for one in made for fault in server.apply(one)]
            kinds = " ".join(sorted({one["kind"] for one in made}))
            print(f"{path.stem + ' '.join(('', *arguments)):28} {len(made):2} applied, {len(faults)} refused or warned of: {kinds}")
            for one, fault in faults:
                print(f"  {one['kind']} {one['metadata']['name']}: {fault}")
            bad += len(faults)
            for one in made:
                server.delete(one)
    return bad


def notices(server):
    """Whether wrong documents are noticed, so that silence means something."""
    made = {one["kind"]: one for one in documents(MINIMAL)}
    pod, rooted = made["Pod"], made["Deployment"]
    misspelt = {**pod, "spec": {**pod["spec"], "automountToken": False}}
    rooted["spec"]["template"]["spec"]["securityContext"]["runAsNonRoot"] = False
    return bool(server.apply(misspelt)) and any("runAsNonRoot" in fault for fault in server.apply(rooted)) and not server.delete(rooted)


class Helm:
    """Helm against that server."""

    def __init__(self, server):
        self.server, self.seen = server, set()
        self.environment = {**os.environ, "KUBECONFIG": str(server.kubeconfig()), "HOME": str(server.work)}

    def begin(self, *arguments):
        """Begins a command of Helm's for the release."""
        command = [needed("LEASEHOLD_TEST_HELM"), *arguments, "--namespace", NAMESPACE, "--kube-insecure-skip-tls-verify"]
        return subprocess.Popen(command, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                env=self.environment)

    def run(self, *arguments):
        """(exit code, what was printed)."""
        process = self.begin(*arguments)
        text, _ = process.communicate(timeout=300)
        return process.returncode, text

    def upgrade(self, tag, succeeds, *more):
        """An upgrade to another image, whose migration ends as it is told to."""
        process = self.begin("upgrade", RELEASE, str(CHART), "--values", str(MINIMAL), "--set", f"image.tag={tag}", "--timeout", "4m", *more)
        name = f"{RELEASE}-leasehold-migrate"
        self.server.wait(lambda: process.poll() is not None or self.another_job(name), "the migration's Job")
        before = self.image()
        if process.poll() is None:
            conditions, counts = ("SuccessCriteriaMet", "Complete"), {"succeeded": 1, "completionTime": NOW}
            if not succeeds:
                conditions, counts = ("FailureTarget", "Failed"), {"failed": 4}
            said = [{"type": one, "status": "True", "reason": "Told", "message": "", "lastProbeTime": NOW, "lastTransitionTime": NOW}
                    for one in conditions]
            faults = self.server.apply({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "namespace": NAMESPACE},
                                        "status": {"startTime": NOW, "conditions": said, **counts}}, "/status")
            assert not faults, faults
        text, _ = process.communicate(timeout=300)
        return process.returncode, text, before

    def another_job(self, name):
        """Whether there is a Job that was not there at an earlier upgrade."""
        job = self.server.get("batch/v1", "Job", name)
        if not job or job["metadata"]["uid"] in self.seen:
            return False
        self.seen.add(job["metadata"]["uid"])
        return True

    def image(self):
        """The image that the Deployment asks for."""
        (container,) = self.deployment()["template"]["spec"]["containers"]
        return container["image"]

    def replicas(self):
        """How many replicas it asks for."""
        return self.deployment()["replicas"]

    def deployment(self):
        """The Deployment's specification."""
        return self.server.get("apps/v1", "Deployment", f"{RELEASE}-leasehold")["spec"]


def story(server):
    """Installs, upgrades with good and failed migrations, rolls back, uninstalls; gives back what was not as it should be."""
    helm, faults = Helm(server), []

    def expect(what, holds, text=""):
        print(f"{'ok  ' if holds else 'FAIL'} {what}")
        if not holds:
            faults.append(what)
            print(text)

    code, text = helm.run("install", RELEASE, str(CHART), "--values", str(MINIMAL), "--set", "image.tag=v1")
    expect("an install is taken", code == 0, text)
    code, text, before = helm.upgrade("v2", True)
    expect("an upgrade runs the migration while the old pods are asked for", code == 0 and before == "leasehold:v1", text)
    expect("then the new ones are", helm.image() == "leasehold:v2")
    code, text, _ = helm.upgrade("v3", False)
    expect("an upgrade whose migration fails is failed", code != 0, text)
    expect("and no new pod is asked for", helm.image() == "leasehold:v2")
    code, text, before = helm.upgrade("v4", True)
    expect("the next upgrade goes through", code == 0 and before == "leasehold:v2" and helm.image() == "leasehold:v4", text)
    code, text = helm.run("rollback", RELEASE, "1")
    expect("a rollback to the install is taken", code == 0 and helm.image() == "leasehold:v1", text)
    code, text, _ = helm.upgrade("v5", True)
    expect("an upgrade after it is taken", code == 0 and helm.image() == "leasehold:v5", text)
    code, text, _ = helm.upgrade("v6", True, "--set", "replicas=3")
    expect("an upgrade to three replicas is taken", code == 0 and helm.replicas() == 3, text)
    scaled = ("--set", "autoscaling.enabled=true")
    code, text, _ = helm.upgrade("v7", True, *scaled)
    expect("switching the autoscaler on takes none of them away", code == 0 and helm.replicas() == 3, text)
    server.scale(f"{RELEASE}-leasehold", 5)
    code, text, _ = helm.upgrade("v8", True, *scaled)
    expect("nor does an upgrade take away what the autoscaler added", code == 0 and helm.replicas() == 5, text)
    process = helm.begin("upgrade", RELEASE, str(CHART), "--values", str(MINIMAL), "--set", "image.tag=v9", "--set", "migrations.mode=none", *scaled)
    expect("nor does the one after it", process.wait(300) == 0 and helm.replicas() == 5)
    code, text, _ = helm.upgrade("v10", True, "--set", "replicas=2", "--force-conflicts")
    expect("switching the autoscaler off is taken, with --force-conflicts", code == 0 and helm.replicas() == 2, text)
    code, text, _ = helm.upgrade("v11", True, "--set", "serviceAccount.name=queues", "--set", f"migrations.serviceAccountName={RELEASE}-leasehold")
    expect("a ServiceAccount of another name takes the present one for the migration", code == 0, text)
    code, text = helm.run("uninstall", RELEASE)
    expect("an uninstall leaves no Deployment behind",
           code == 0 and server.get("apps/v1", "Deployment", f"{RELEASE}-leasehold") is None, text)
    return len(faults)


def main(programs):
    """Says by its exit code whether all was as it should be."""
    with tempfile.TemporaryDirectory(prefix="leasehold-apiserver.") as work:
        server = ApiServer(programs, Path(work))
        try:
            server.start()
            server.define(needed("LEASEHOLD_TEST_CRDS").split(":"))
            for one in there_already():
                assert server.apply(one) == [], one
            assert notices(server), "the server lets wrong documents through"
            bad = apply_all(server)
            bad += story(server)
        finally:
            server.stop()
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
