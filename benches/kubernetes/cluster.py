"""A control plane with many KWOK nodes, and the systems that place pods on them: the default scheduler, Kueue
and Topolane.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import kueue_controller
from api import Api
from control_plane import Body, ControlPlane, missing
from waiting import until

BLOCK, RACK, HOST = "bench/block", "bench/rack", "kubernetes.io/hostname"
LEVELS = [BLOCK, RACK, HOST]
QPS = 5000
"""Calls per second that each client permits itself, so high that the API server is the limit."""
NODES, JOBS = "/api/v1/nodes", "/apis/batch/v1/namespaces/default/jobs"


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


def start_kueue(plane: Cluster) -> None:
    """Starts Kueue's controller with one queue that is large enough for everything, on the levels of the
    cluster.
    """
    if "kueue" in plane.processes:
        return
    kueue_controller.define(plane)
    kueue_controller.prepare(plane)
    kueue_controller.start_kueue(
        plane,
        chooses=True,
        clientConnection={"qps": QPS, "burst": QPS},
        controller={"groupKindConcurrency": {"Job.batch": 5, "Pod": 5, "Workload.kueue.x-k8s.io": 5}},
    )
    kueue_controller.add_topology(plane, "all", LEVELS)
    room = {name: "1000000Ti" if name == "memory" else "1000000" for name in plane.shape.room}
    kueue_controller.add_queue(plane, "all", room, topologyName="all", nodeLabels={"bench/flavor": "all"})
