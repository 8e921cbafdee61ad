"""A real Kubernetes API server, without nodes and controllers."""

import json
import ssl
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

import yaml

from harness.chart import NAMESPACE
from harness.cluster import free_port

TOKEN = "a-token-of-this-run"


class ApiServer:
    """One etcd and one kube-apiserver, in a directory of their own."""

    def __init__(self, programs, work):
        self.programs, self.work, self.port = Path(programs), Path(work), free_port()
        self.processes, self.paths = [], {}
        self.context = ssl._create_unverified_context()

    def start(self):
        """Waits until it answers."""
        etcd, peer = free_port(), free_port()
        key = self.work / "key.pem"
        subprocess.run(["openssl", "genrsa", "-out", key, "2048"], check=True, capture_output=True)
        (self.work / "tokens").write_text(f"{TOKEN},admin,1,system:masters\n")
        self._run("etcd", f"--data-dir={self.work}/etcd", f"--listen-client-urls=http://127.0.0.1:{etcd}",
                  f"--advertise-client-urls=http://127.0.0.1:{etcd}", f"--listen-peer-urls=http://127.0.0.1:{peer}")
        # The controller that makes service accounts is not there.
        self._run("kube-apiserver", f"--etcd-servers=http://127.0.0.1:{etcd}", "--bind-address=127.0.0.1", f"--secure-port={self.port}",
                  f"--cert-dir={self.work}/certificates", f"--token-auth-file={self.work}/tokens", "--authorization-mode=RBAC",
                  "--service-cluster-ip-range=10.0.0.0/24,fd00:10::/112", "--disable-admission-plugins=ServiceAccount",
                  "--service-account-issuer=https://kubernetes.default.svc", f"--service-account-key-file={key}",
                  f"--service-account-signing-key-file={key}")
        self.wait(lambda: self.ask("GET", "/readyz")[0] == 200, "the API server")
        return self

    def _run(self, program, *arguments):
        with open(self.work / f"{program}.log", "ab") as log:
            self.processes.append(subprocess.Popen([self.programs / program, *arguments], stdin=subprocess.DEVNULL, stdout=log,
                                                   stderr=log, cwd=self.work))

    def wait(self, condition, what, within=180):
        deadline = time.monotonic() + within
        while not condition():
            ended = [process.args[0] for process in self.processes if process.poll() is not None]
            assert not ended and time.monotonic() < deadline, f"{what} does not come; ended: {ended}; see {self.work}"
            time.sleep(0.2)

    def stop(self):
        """Ends both."""
        for process in reversed(self.processes):
            process.terminate()
            process.wait(60)

    def ask(self, method, path, body=None):
        """(status, answer, warnings); no status where nobody answers."""
        kind = "application/apply-patch+yaml" if method == "PATCH" else "application/json"
        request = urllib.request.Request(f"https://127.0.0.1:{self.port}{path}", method=method, data=body and body.encode(),
                                         headers={"Authorization": f"Bearer {TOKEN}", "Content-Type": kind})
        try:
            with urllib.request.urlopen(request, timeout=60, context=self.context) as answer:
                return answer.status, answer.read().decode(), answer.headers.get_all("Warning") or []
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode(), []
        except OSError as error:
            return None, str(error), []

    def path(self, document):
        """Where a document belongs."""
        group, kind = document["apiVersion"], document["kind"]
        base = f"/api/{group}" if "/" not in group else f"/apis/{group}"
        if (group, kind) not in self.paths:
            status, text, _ = self.ask("GET", base)
            assert status == 200, text
            self.paths |= {(group, one["kind"]): one for one in json.loads(text)["resources"] if "/" not in one["name"]}
        resource = self.paths[group, kind]
        space = f"/namespaces/{document['metadata'].get('namespace', NAMESPACE)}" if resource["namespaced"] else ""
        return f"{base}{space}/{resource['name']}/{document['metadata']['name']}"

    def apply(self, document, part=""):
        """Server-side apply, strict: what is wrong or warned of, or nothing. `part` is a subresource, such as `/status`."""
        status, text, warnings = self.ask("PATCH", f"{self.path(document)}{part}?fieldManager=chart&fieldValidation=Strict",
                                          yaml.safe_dump(document))
        return warnings if status in (200, 201) else [f"{status} {text}"]

    def delete(self, document):
        """Takes it away."""
        self.ask("DELETE", f"{self.path(document)}?propagationPolicy=Background&gracePeriodSeconds=0")

    def define(self, paths):
        """Defines the kinds of others."""
        for path in paths:
            for document in yaml.safe_load_all(Path(path).read_text()):
                if document and document["kind"] == "CustomResourceDefinition":
                    document.pop("status", None)
                    status, text, _ = self.ask("PATCH", f"{self.path(document)}?fieldManager=chart", yaml.safe_dump(document))
                    assert status in (200, 201), text
                    where = self.path(document)
                    self.wait(lambda: self.is_established(where), where)

    def is_established(self, where):
        """Whether a definition may be used."""
        conditions = json.loads(self.ask("GET", where)[1])["status"].get("conditions") or []
        return ("Established", "True") in [(one["type"], one["status"]) for one in conditions]

    def get(self, api, kind, name):
        """A document of the namespace; None where there is none."""
        path = self.path({"apiVersion": api, "kind": kind, "metadata": {"name": name}})
        status, text, _ = self.ask("GET", path)
        return json.loads(text) if status == 200 else None

    def scale(self, name, replicas):
        """Does what an autoscaler does to a Deployment."""
        path = self.path({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}}) + "/scale"
        scale = json.loads(self.ask("GET", path)[1])
        scale["spec"]["replicas"] = replicas
        status, text, _ = self.ask("PUT", f"{path}?fieldManager=kube-controller-manager", json.dumps(scale))
        assert status == 200, text

    def kubeconfig(self):
        """Where it is for Helm."""
        path = self.work / "kubeconfig"
        path.write_text(yaml.safe_dump({
            "apiVersion": "v1", "kind": "Config", "current-context": "it",
            "clusters": [{"name": "it", "cluster": {"server": f"https://127.0.0.1:{self.port}", "insecure-skip-tls-verify": True}}],
            "users": [{"name": "me", "user": {"token": TOKEN}}],
            "contexts": [{"name": "it", "context": {"cluster": "it", "user": "me"}}]}))
        return path
