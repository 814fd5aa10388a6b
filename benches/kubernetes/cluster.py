"""A control plane with many KWOK nodes, and the systems that place pods on them: the default scheduler, Kueue
and Topolane.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from api import Api
from control_plane import BIN, Body, ControlPlane, free_port, missing
from waiting import until

BLOCK, RACK, HOST = "bench/block", "bench/rack", "kubernetes.io/hostname"
LEVELS = [BLOCK, RACK, HOST]
QPS = 5000
"""Calls per second that each client permits itself, so high that the API server is the limit."""
NODES, JOBS = "/api/v1/nodes", "/apis/batch/v1/namespaces/default/jobs"
KUEUE_API = "/apis/kueue.x-k8s.io/v1beta2"


@dataclasses.dataclass(frozen=True)
class Shape:
    """The size of a cluster."""

    nodes: int
    rack: int
    block: int
    """Racks in a block."""
    room: dict[str, str]
    """The resources of each node."""

    def rack_of(self, node: int) -> int:
        return node // self.rack

    def block_of(self, node: int) -> int:
        return node // (self.rack * self.block)


def node_name(node: int) -> str:
    return f"n{node:05}"


def load_text() -> str:
    """The load of the machine as text, because figures of a busy machine mean less."""
    return f"Load average of the last minutes: {os.getloadavg()[1]:.1f} on {os.cpu_count()} cores."


def say(text: str) -> None:
    print(f"[{time.strftime('%H:%M:%S')}] {text}", flush=True)


class Cluster(ControlPlane):
    """A control plane whose nodes are always ready, so that no lease is renewed."""

    controllers = "job-controller,garbage-collector-controller"
    admission_off = "ServiceAccount,TaintNodesByCondition"
    lease_seconds = 0

    def __init__(self, home: Path, shape: Shape) -> None:
        super().__init__(home)
        self.shape = shape
        self.api = Api(self)

    def add_nodes(self) -> None:
        room = {"pods": "110", **self.shape.room}
        self.api.each(lambda node: self.api.post(NODES, self.node(node, room)), range(self.shape.nodes))

    def node(self, node: int, room: dict[str, str]) -> Body:
        name = node_name(node)
        labels = {
            HOST: name, RACK: f"r{self.shape.rack_of(node):04}", BLOCK: f"b{self.shape.block_of(node):04}",
            "bench/flavor": "all",
        }  # fmt: skip
        ready = {"type": "Ready", "status": "True"}
        return {
            "metadata": {"name": name, "labels": labels, "annotations": {"kwok.x-k8s.io/node": "fake"}},
            "status": {"allocatable": room, "capacity": room, "conditions": [ready], "phase": "Running"},
        }

    def scheduler_config(self, args: dict[str, Any] | None) -> Body:
        """The configuration of the default scheduler, or of topolane-scheduler with these plugin arguments."""
        profile: Body = {"schedulerName": "default-scheduler"}
        if args is not None:
            enabled = {"enabled": [{"name": "Topolane"}]}
            profile = {
                "schedulerName": "topolane",
                "plugins": {"multiPoint": enabled, "bind": enabled},
                "pluginConfig": [{"name": "Topolane", "args": {"topologyLabels": LEVELS} | args}],
            }
        return {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "clientConnection": {"kubeconfig": str(self.kubeconfig), "qps": QPS, "burst": QPS},
            "leaderElection": {"leaderElect": False},
            "podInitialBackoffSeconds": 1,
            "podMaxBackoffSeconds": 2,
            "profiles": [profile],
        }

    def start(self, name: str, args: dict[str, Any] | None) -> None:
        """Starts a scheduler under a name."""
        path = self.home / f"{name}.json"
        path.write_text(json.dumps(self.scheduler_config(args)))
        self.run("topolane-scheduler", f"--config={path}", "--secure-port=0", "-v=2", log=name)

    def memory(self, name: str) -> float:
        """The most memory that a process had, in bytes."""
        status = Path(f"/proc/{self.processes[name].pid}/status").read_text()
        (line,) = (line for line in status.splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024

    def processor_time(self, name: str) -> float:
        """The processor time of a process, in seconds."""
        fields = Path(f"/proc/{self.processes[name].pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def clear(self) -> None:
        """Deletes all Jobs and pods."""
        self.api.each(lambda job: self.api.delete(f"{JOBS}/{job['metadata']['name']}"), self.api.items(JOBS))
        pods = "/api/v1/namespaces/default/pods"
        self.api.delete(pods)
        until(lambda: not self.api.call("GET", f"{pods}?limit=1")["items"], "all pods are gone")


@contextlib.contextmanager
def cluster(shape: Shape) -> Iterator[Cluster]:
    """A cluster that ends with the context."""
    if why := missing():
        raise RuntimeError(why)
    with TemporaryDirectory(prefix="topolane-kubernetes-") as home:
        made = Cluster(Path(home), shape)
        try:
            say(f"{shape.nodes:,} nodes")
            made.add_nodes()
            yield made
        except (AssertionError, OSError):
            for name in made.processes:
                print(
                    f"{name} said last:",
                    *(line[:300] for line in made.log(name).splitlines()[-4:]),
                    sep="\n  ",
                    file=sys.stderr,
                )
            raise
        finally:
            made.stop()


def has_kueue() -> bool:
    return os.access(BIN / "kueue", os.X_OK)


def kueue_definitions() -> list[str]:
    """Kueue's custom resource definitions as YAML, reduced to the version that its controller uses."""
    where = subprocess.run(
        ["go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/kueue"],
        cwd=Path(__file__).parents[1] / "kueue", check=True, capture_output=True, text=True,
    ).stdout.strip()  # fmt: skip
    found = []
    for path in sorted((Path(where) / "config/components/crd/bases").glob("*.yaml")):
        head, *versions = re.split(
            r"^(?=  - )", path.read_text().partition("  versions:\n")[2], flags=re.MULTILINE
        )
        begin = path.read_text().partition("  versions:\n")[0]
        for version in versions:
            if re.search(r"^  (- |  )name: v1beta2$", version, re.MULTILINE):
                version = version.replace("\n    storage: false\n", "\n    storage: true\n")
                found.append(f"{begin}{CONVERSION}  versions:\n{head}{version}")
    return found


CONVERSION = """\
  conversion:
    strategy: Webhook
    webhook:
      clientConfig: {service: {namespace: kueue-system, name: kueue-webhook-service, path: /convert}}
      conversionReviewVersions: [v1]
"""
"""The conversion section. With a single version nothing is converted, but Kueue must be able to write its
certificate there.
"""


def start_kueue(plane: Cluster) -> None:
    """Starts Kueue's controller with one queue that is large enough for everything, on the levels of the
    cluster.
    """
    api = plane.api
    if "kueue" in plane.processes:
        return
    for definition in kueue_definitions():
        api.call(
            "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition, "application/yaml"
        )

    def are_served() -> bool:
        found = api.items("/apis/apiextensions.k8s.io/v1/customresourcedefinitions")
        conditions = [one.get("status", {}).get("conditions") or [] for one in found]
        return all(any(c["type"] == "Established" and c["status"] == "True" for c in of) for of in conditions)

    until(are_served, "Kueue's resources are served")
    api.post("/api/v1/namespaces", {"metadata": {"name": "kueue-system"}})
    api.post("/api/v1/namespaces/kueue-system/secrets", {"metadata": {"name": "kueue-webhook-server-cert"}})
    certificates = plane.home / "kueue-certificates"
    certificates.mkdir()
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=kueue",
         "-keyout", certificates / "tls.key", "-out", certificates / "tls.crt"],
        check=True, capture_output=True,
    )  # fmt: skip
    config = {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "namespace": "kueue-system",
        "health": {"healthProbeBindAddress": f"127.0.0.1:{free_port()}"},
        "metrics": {"bindAddress": "0"},
        "webhook": {"port": free_port(), "certDir": str(certificates)},
        "leaderElection": {"leaderElect": False},
        "clientConnection": {"qps": QPS, "burst": QPS},
        "controller": {"groupKindConcurrency": {"Job.batch": 5, "Pod": 5, "Workload.kueue.x-k8s.io": 5}},
        "featureGates": {"VisibilityOnDemand": False},
        "integrations": {"frameworks": ["batch/job"]},
    }
    path = plane.home / "kueue.json"
    path.write_text(json.dumps(config))
    os.environ["KUBECONFIG"] = str(plane.kubeconfig)
    plane.run("kueue", f"--config={path}")
    levels = {"levels": [{"nodeLabel": key} for key in LEVELS]}
    api.post(f"{KUEUE_API}/topologies", {
        "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Topology", "metadata": {"name": "all"}, "spec": levels,
    })  # fmt: skip
    api.post(f"{KUEUE_API}/resourceflavors", {
        "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ResourceFlavor", "metadata": {"name": "all"},
        "spec": {"nodeLabels": {"bench/flavor": "all"}, "topologyName": "all"},
    })  # fmt: skip
    room = {name: "1000000Ti" if name == "memory" else "1000000" for name in plane.shape.room}
    quotas = [{"name": name, "nominalQuota": amount} for name, amount in room.items()]
    group = {"coveredResources": list(room), "flavors": [{"name": "all", "resources": quotas}]}
    api.post(f"{KUEUE_API}/clusterqueues", {
        "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ClusterQueue", "metadata": {"name": "all"},
        "spec": {"namespaceSelector": {}, "resourceGroups": [group]},
    })  # fmt: skip
    api.post(f"{KUEUE_API}/namespaces/default/localqueues", {
        "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "LocalQueue",
        "metadata": {"name": "all", "namespace": "default"}, "spec": {"clusterQueue": "all"},
    })  # fmt: skip

    def is_active() -> bool:
        status = api.call("GET", f"{KUEUE_API}/clusterqueues/all").get("status", {})
        return any(c["type"] == "Active" and c["status"] == "True" for c in status.get("conditions", []))

    until(is_active, "Kueue's queue is active")
