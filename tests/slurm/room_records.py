"""Records of Slurm made by hand for plans that requeue jobs, and a Slurm that does at once what scontrol says."""

from __future__ import annotations

import dataclasses
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from plugin_files import running, write_counters, write_jobs
from topolane import Machine
from topolane._engine import isolating_policies
from topolane.cluster import applying
from topolane.slurm import plugin_state, requeueing
from topolane.slurm.inspection import InspectionSettings, SlurmInspection
from topolane.slurm.records import Partition, Reservation, SlurmJob, SlurmNode, Snapshot

NOW = float(int(time.time()))
MACHINE = """\
name = "node"
[[site]]
name = "core"
children = [6, 2, 2]
parents = [1, 3, 3]
nodes = "node[1-24]"
"""
TREE = Machine.parse(MACHINE, "machine.toml")


def a_job(number: int, **given: Any) -> SlurmJob:
    """A job of which only this is known."""
    empty = {"str": "", "int": 0, "float": 0.0, "bool": False}
    known: dict[str, Any] = {field.name: empty.get(str(field.type)) for field in dataclasses.fields(SlurmJob)}
    known |= {"id": number, "number": str(number), "record": str(number), "user": "ada", "exclusive": True}
    known |= {"partitions": ("p",), "gres": (), "gres_held": (), "priority": 10, "cpus_per_process": 1}
    return SlurmJob(**(known | given))


def runs(number: int, nodes: str, hours: float, **given: Any) -> SlurmJob:
    """A job that started `hours` hours ago and may be requeued."""
    known = {"state": "RUNNING", "nodes": nodes, "allocated": nodes, "start": NOW - 3600 * hours}
    return a_job(number, **(known | {"requeueable": True} | given))


def waits(number: int, nodes: int, **given: Any) -> SlurmJob:
    return a_job(number, **({"state": "PENDING", "fewest_nodes": nodes, "priority": 20} | given))


def look_at(
    state: Path, *jobs: SlurmJob, policy: str = "isolated", min_bandwidth: float = 1.0
) -> SlurmInspection:
    """Slurm with these jobs and an active plugin, which gives all of them that policy."""
    write_counters(state, calls=1)
    use = "isolated" if policy in isolating_policies() else "shared"
    given = [running(job.id, policy, use) for job in jobs if job.holds_nodes and not job.is_stock]
    write_jobs(state, "call-time 2000000", f"rule 1 {policy} {min_bandwidth}", *given)
    names = [TREE.node_name(node) for node in range(TREE.nodes)]
    nodes = {name: SlurmNode(name, frozenset({"idle"}), 16, 2, 1 << 30, frozenset()) for name in names}
    snapshot = Snapshot(
        NOW, {job.id: job for job in jobs}, nodes, {"p": Partition("p", "node[1-24]", True, None)}, {}
    )
    known = {"TopologyPlugin": "topology/topolane"}
    return SlurmInspection(NOW, known, snapshot, plugin_state.read(state), TREE, {}, ())


FULL = (
    runs(1, "node[1-6]", 4),
    runs(2, "node[7-12]", 3),
    runs(3, "node[13-18]", 2),
    runs(4, "node[19-24]", 1),
)


class Slurm:
    """A Slurm that does at once what scontrol says, and remembers it. `dies`: raises at that change, before or after it."""

    def __init__(self, state: Path, *jobs: SlurmJob) -> None:
        self.state, self.jobs, self.changes = state, list(jobs), list[str]()
        self.reserved: dict[str, Reservation] = {}
        self.dies: tuple[int, bool] | None = None

    def look(self, _: InspectionSettings) -> SlurmInspection:
        found = look_at(self.state, *self.jobs)
        assert found.snapshot is not None
        return dataclasses.replace(
            found, snapshot=dataclasses.replace(found.snapshot, reservations=dict(self.reserved))
        )

    def scontrol(self, *words: str) -> str:
        now = self.dies is not None and self.dies[0] == len(self.changes)
        if now and self.dies is not None and not self.dies[1]:
            raise Killed
        self.changes.append(" ".join(words))
        given = dict(word.split("=", 1) for word in words if "=" in word)
        if words[0] == "create":
            self.reserved[given["ReservationName"]] = Reservation(
                given["ReservationName"], given["Nodes"], NOW, NOW + 9e9
            )
        elif words[0] == "delete":
            del self.reserved[given["ReservationName"]]
        elif words[0] == "requeue":
            self.change(words[1], nodes="", allocated="", state="PENDING", start=0.0, restarts=1)
        elif "JobId" in given:
            self.change(given["JobId"], reservation=given["ReservationName"])
        elif "EndTime" in given:
            del self.reserved[given["ReservationName"]]
        waiting = next((job for job in self.jobs if job.number == "9"), None)
        if waiting is not None and waiting.reservation and words[0] == "requeue" and len(self.running()) == 2:
            self.change("9", state="RUNNING", nodes="node[13-24]", allocated="node[13-24]", start=NOW)
        if now:
            raise Killed
        return ""

    def replace_real_one(self, monkeypatch: pytest.MonkeyPatch, module: ModuleType) -> None:
        """A module that carries out plans, and what it is made of, ask this Slurm."""
        monkeypatch.setattr(requeueing, "inspect", self.look)
        monkeypatch.setattr(requeueing, "scontrol", self.scontrol)
        monkeypatch.setattr(applying.Applying, "PAUSE", 0.01)
        monkeypatch.setattr(module, "scontrol", self.scontrol)

    def running(self) -> list[str]:
        return [job.number for job in self.jobs if job.state == "RUNNING"]

    def change(self, number: str, **given: Any) -> None:
        self.jobs = [dataclasses.replace(job, **given) if job.number == number else job for job in self.jobs]


class Killed(BaseException):
    """In the place of kill -9."""
