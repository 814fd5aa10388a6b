"""A real control plane on this machine: etcd, kube-apiserver, kube-controller-manager, KWOK's nodes, and topolane-scheduler."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import hmac
import itertools
import json
import os
import shutil
import socket
import ssl
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from waiting import DEADLINE, until

ROOT = Path(__file__).parents[2]
BIN = Path(os.environ.get("TOPOLANE_KUBERNETES_BIN", ROOT / "target" / "kubernetes"))
"""Where `make components` puts the components."""
COMPONENTS = ("etcd", "kube-apiserver", "kube-controller-manager", "kwok", "topolane-scheduler")
NODES, CHASSIS, RACK, BLOCK = 64, 8, 16, 32
LABELS = ["topo/block", "topo/rack", "kubernetes.io/hostname"]
SMALL = ["topo/block", "topo/chassis", "kubernetes.io/hostname"]
GROUP = itertools.count()
TOKEN = "of-this-test-alone"
STAGES = """\
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata: {name: pod-runs}
spec:
  resourceRef: {apiGroup: v1, kind: Pod}
  selector:
    matchExpressions:
    - {key: .metadata.deletionTimestamp, operator: DoesNotExist}
    - {key: .status.phase, operator: In, values: [Pending]}
  next:
    statusTemplate: |
      phase: Running
      startTime: {{ Now | Quote }}
      conditions:
      - {type: Ready, status: "True", lastTransitionTime: {{ Now | Quote }}}
---
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata: {name: pod-ends}
spec:
  resourceRef: {apiGroup: v1, kind: Pod}
  selector:
    matchExpressions:
    - {key: .metadata.deletionTimestamp, operator: Exists}
  next:
    finalizers: {empty: true}
    delete: true
"""
"""Pods run until they are deleted. KWOK's own stages end the pods of a Job at once."""
Body = dict[str, Any]


def missing() -> str | None:
    """Why there can be no control plane here; None if there can."""
    absent = [name for name in COMPONENTS if not os.access(BIN / name, os.X_OK)]
    absent += [] if shutil.which("openssl") else ["openssl"]
    return f"{', '.join(absent)} missing: make components builds them" if absent else None


def name() -> str:
    """A name of a group. None is used twice, because Events stay."""
    return f"g{next(GROUP)}"


def free_port() -> int:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return int(server.getsockname()[1])


class ControlPlane:
    """The processes, and the API."""

    controllers = "job-controller,garbage-collector-controller,node-lifecycle-controller"
    admission_off = "ServiceAccount"
    lease_seconds = 40
    """How long a node counts as ready after a sign of life; 0: always, without signs."""

    def __init__(self, home: Path, gates: Sequence[str] = (), runtime: str = "") -> None:
        """Feature gates, and a group and version of the API, are switched on."""
        self.home = home
        self.gates = [f"--feature-gates={','.join(f'{gate}=true' for gate in gates)}"] if gates else []
        self.runtime = [f"--runtime-config={runtime}=true"] if runtime else []
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.port = free_port()
        self.tls = ssl.create_default_context()
        self.tls.check_hostname = False
        self.tls.verify_mode = ssl.CERT_NONE
        self._serve()

    def _serve(self) -> None:
        home, etcd, peer = self.home, free_port(), free_port()
        key = home / "sa.key"
        subprocess.run(["openssl", "genrsa", "-out", key, "2048"], check=True, capture_output=True)
        (home / "stages.yaml").write_text(STAGES)
        (home / "tokens.csv").write_text(f'{TOKEN},admin,admin,"system:masters"\n')
        cluster = {"server": f"https://127.0.0.1:{self.port}", "insecure-skip-tls-verify": True}
        self.kubeconfig = home / "kubeconfig"
        context = {"cluster": "c", "user": "u"}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "x",
            "clusters": [{"name": "c", "cluster": cluster}],
            "users": [{"name": "u", "user": {"token": TOKEN}}],
            "contexts": [{"name": "x", "context": context}],
        }
        self.kubeconfig.write_text(json.dumps(config))
        client, to_peer = f"http://127.0.0.1:{etcd}", f"http://127.0.0.1:{peer}"
        self.run(
            "etcd", f"--data-dir={home}/etcd", f"--listen-client-urls={client}", f"--advertise-client-urls={client}",
            f"--listen-peer-urls={to_peer}", "--unsafe-no-fsync", "--quota-backend-bytes=8589934592",
            # The API server lets etcd forget what is old after ten minutes of its life, which a soak does not give it.
            "--auto-compaction-mode=periodic", "--auto-compaction-retention=1m",
        )  # fmt: skip
        self.run(
            "kube-apiserver", f"--etcd-servers={client}", f"--service-account-key-file={key}",
            f"--service-account-signing-key-file={key}", "--service-account-issuer=https://localhost",
            f"--token-auth-file={home}/tokens.csv", f"--secure-port={self.port}", "--bind-address=127.0.0.1",
            "--advertise-address=192.0.2.1",  # it wants one that is not on loopback, and nothing here goes there
            f"--cert-dir={home}/certificates", "--authorization-mode=RBAC", "--service-cluster-ip-range=10.0.0.0/24",
            f"--disable-admission-plugins={self.admission_off}", *self.gates, *self.runtime,
        )  # fmt: skip
        until(lambda: self.get("/readyz", text=True) == "ok", "kube-apiserver is ready")
        self.run(
            "kube-controller-manager", f"--kubeconfig={self.kubeconfig}", "--leader-elect=false",
            f"--controllers={self.controllers}", "--secure-port=0",
            "--kube-api-qps=500", "--kube-api-burst=500",
        )  # fmt: skip
        self.run(
            "kwok", f"--kubeconfig={self.kubeconfig}", "--manage-all-nodes=true", f"--config={home}/stages.yaml",
            f"--node-lease-duration-seconds={self.lease_seconds}",
        )  # fmt: skip

    def run(self, name: str, *options: str, log: str = "", environment: dict[str, str] | None = None) -> None:
        """Starts a component; its output is in a file of its name."""
        with (self.home / f"{log or name}.log").open("ab") as output:
            self.processes[log or name] = subprocess.Popen(
                [BIN / name, *options],
                stdout=output,
                stderr=output,
                env=os.environ | (environment or {}),
            )

    def start_scheduler(
        self,
        name: str = "topolane-scheduler",
        elect: bool = False,
        port: int = 0,
        profile: str = "topolane",
        **args: Any,
    ) -> None:
        """Starts topolane-scheduler with these args of the plugin.

        port: where it serves its metrics; 0 for nowhere. profile: the name that pods choose it by.
        """
        plugins = {
            "multiPoint": {"enabled": [{"name": "Topolane"}]},
            "bind": {"enabled": [{"name": "Topolane"}]},
            "postFilter": {"enabled": [{"name": "Topolane"}]},
        }
        ours = {
            "schedulerName": profile,
            "plugins": plugins,
            "pluginConfig": [{"name": "Topolane", "args": args}],
        }
        others = [] if profile == "default-scheduler" else [{"schedulerName": "default-scheduler"}]
        config = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "clientConnection": {"kubeconfig": str(self.kubeconfig), "qps": 1000, "burst": 1000},
            "leaderElection": {
                "leaderElect": elect, "resourceName": "topolane-scheduler", "leaseDuration": "4s", "renewDeadline": "3s",
                "retryPeriod": "1s",
            },
            "podInitialBackoffSeconds": 1,
            "podMaxBackoffSeconds": 2,
            "profiles": [ours, *others],
        }  # fmt: skip
        path = self.home / f"{name}.json"
        path.write_text(json.dumps(config))
        served = [f"--secure-port={port}"]
        if port:
            served += ["--bind-address=127.0.0.1", f"--cert-dir={self.home}/{name}-certificates"]
            served += [
                f"--{what}-kubeconfig={self.kubeconfig}" for what in ("authentication", "authorization")
            ]
        self.run("topolane-scheduler", f"--config={path}", *served, "-v=2", *self.gates, log=name)

    def kill(self, name: str) -> None:
        """kill -9."""
        process = self.processes.pop(name)
        process.kill()
        process.wait()

    def stop(self) -> None:
        for process in reversed(self.processes.values()):
            process.kill()
        for process in self.processes.values():
            process.wait()

    def log(self, name: str = "topolane-scheduler") -> str:
        return (self.home / f"{name}.log").read_text(errors="replace")

    def call(self, method: str, path: str, body: Any = None, kind: str = "application/json") -> bytes:
        text = body if body is None or isinstance(body, str) else json.dumps(body)
        data = None if text is None else text.encode()
        headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": kind, "Accept": "application/json"}
        request = urllib.request.Request(
            f"https://127.0.0.1:{self.port}{path}", data=data, headers=headers, method=method
        )
        with urllib.request.urlopen(request, context=self.tls, timeout=DEADLINE) as answer:
            return bytes(answer.read())

    def get(self, path: str, text: bool = False) -> Any:
        said = self.call("GET", path)
        return said.decode() if text else json.loads(said)

    def post(self, path: str, body: Body) -> Any:
        return json.loads(self.call("POST", path, body))

    def patch(self, path: str, body: Body) -> None:
        self.call("PATCH", path, body, "application/merge-patch+json")

    def delete(self, path: str) -> None:
        with contextlib.suppress(urllib.error.HTTPError):
            self.call("DELETE", path, {"gracePeriodSeconds": 0, "propagationPolicy": "Background"})

    def signed(self, group: str, pod: Body, text: str) -> dict[str, str]:
        """The annotations with which a scheduler that has the key binds a pod of a group."""
        secret = self.get("/api/v1/namespaces/kube-system/secrets/topolane-placement-key")
        key, uid = base64.b64decode(secret["data"]["key"]), pod["metadata"]["uid"]
        said = f"topolane.io/placement/v2\0{group}\0{uid}\0{text}".encode()
        proof = hmac.new(key, said, hashlib.sha256).hexdigest()
        return {"topolane.io/placement": text, "topolane.io/placement-proof": f"{group} {proof}"}

    def add_node(self, name: str, labels: dict[str, str], **more: Any) -> None:
        room = {"cpu": "64", "memory": "512Gi", "nvidia.com/gpu": "8", "pods": "110"}
        labels = {"kubernetes.io/hostname": name, **labels}
        node = {
            "metadata": {"name": name, "labels": labels, "annotations": {"kwok.x-k8s.io/node": "fake"}},
            "spec": more,
            "status": {
                "allocatable": room,
                "capacity": room,
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        }
        self.post("/api/v1/nodes", node)

    def are_nodes_ready(self) -> bool:
        return not any(node["spec"].get("taints") for node in self.get("/api/v1/nodes")["items"])

    def pods(self, group: str = "") -> list[Body]:
        """All pods, or those of a group that have not ended."""
        everything = self.get("/api/v1/namespaces/default/pods")["items"]
        if not group:
            return list(everything)
        return [
            pod for pod in everything if group_of(pod) == group and pod["status"].get("phase") != "Failed"
        ]

    def submit(self, group: str, size: int, pods: int | None = None, **pod: Any) -> None:
        """Creates a group of pods under a label and an annotation."""
        for rank in range(size if pods is None else pods):
            self.post("/api/v1/namespaces/default/pods", member(group, size, rank, **pod))

    def remove(self, group: str) -> None:
        for pod in self.pods(group):
            self.delete(f"/api/v1/namespaces/default/pods/{pod['metadata']['name']}")

    def nodes_of(self, group: str) -> list[str]:
        """The nodes of a group in rank order; empty for a pod that has none."""
        pods = sorted(
            self.pods(group), key=lambda pod: int(pod["metadata"]["labels"]["apps.kubernetes.io/pod-index"])
        )
        return [pod["spec"].get("nodeName", "") for pod in pods]

    def has_looked(self, scheduler: str = "topolane") -> None:
        """Waits until the scheduler has gone through its queue: it refuses a pod that came last and that no node takes."""
        probe, pods = f"probe-{name()}", "/api/v1/namespaces/default/pods"
        spec = {"schedulerName": scheduler, "nodeSelector": {"no": "such"}, "containers": [container(0)]}
        self.post(pods, {"metadata": {"name": probe}, "spec": spec})
        until(lambda: self.get(f"{pods}/{probe}")["status"].get("conditions"), "the scheduler has looked")
        self.delete(f"{pods}/{probe}")

    def placed(self, group: str, size: int) -> list[str]:
        """The nodes of a group once all its pods have one."""

        def nodes() -> list[str]:
            found = self.nodes_of(group)
            return found if len(found) == size and all(found) else []

        try:
            return list(until(nodes, f"group {group} is placed"))
        except AssertionError as error:
            raise AssertionError(f"{error}; its Events:\n{self.events(group)}") from None

    def events(self, group: str) -> str:
        """What the Events of the pods of a group say, a line each."""
        items = self.get("/api/v1/namespaces/default/events")["items"]
        return "\n".join(
            event["message"]
            for event in items
            if event["involvedObject"].get("name", "").startswith(f"{group}-")
        )

    def waits_saying(self, group: str, said: str) -> str:
        """The Events of a group once they have some words; none of its pods has a node."""
        events = until(
            lambda: said in (text := self.events(group)) and text, f"an Event of group {group} says {said!r}"
        )
        assert not any(self.nodes_of(group)), group
        return str(events)


def group_of(pod: Body) -> str:
    return str(pod["metadata"].get("labels", {}).get("scheduling.x-k8s.io/pod-group", ""))


def member(
    group: str,
    size: int,
    rank: int,
    gpus: int = 8,
    policy: str = "",
    scheduler: str = "topolane",
    **more: Any,
) -> Body:
    """A pod of a group."""
    notes = {"topolane.io/group-size": str(size)} if size else {}
    notes |= {"topolane.io/policy": policy} if policy else {}
    notes |= more.pop("notes", {})
    labels = {"scheduling.x-k8s.io/pod-group": group, "apps.kubernetes.io/pod-index": str(rank)}
    return {
        "metadata": {"name": f"{group}-{rank}", "labels": labels, "annotations": notes},
        "spec": {"schedulerName": scheduler, "containers": [container(gpus)], **more},
    }


def join(
    plane: ControlPlane, group: str, sizes: str, podset: str, count: int, first: int = 0, **pod: Any
) -> None:
    """Creates pods of a podset of a group."""
    for index in range(first, first + count):
        notes = {"topolane.io/group-size": sizes, **({"topolane.io/podset": podset} if podset else {})}
        body = member(
            group,
            0,
            index,
            notes=notes | pod.get("notes", {}),
            **{k: v for k, v in pod.items() if k != "notes"},
        )
        body["metadata"]["name"] = f"{group}-{podset or 'x'}-{index}"
        plane.post("/api/v1/namespaces/default/pods", body)


def container(gpus: int) -> Body:
    amounts = {"cpu": str(max(1, gpus * 4)), "memory": f"{max(1, gpus * 8)}Gi"}
    amounts |= {"nvidia.com/gpu": str(gpus)} if gpus else {}
    return {"name": "c", "image": "none", "resources": {"requests": amounts, "limits": amounts}}


@contextlib.contextmanager
def control_plane(home: Path, gates: Sequence[str] = (), runtime: str = "") -> Iterator[ControlPlane]:
    plane = ControlPlane(home, gates, runtime)
    try:
        yield plane
    finally:
        plane.stop()
