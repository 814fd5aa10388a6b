"""The loop: look at Slurm, tell the scheduler, release what starts."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from typing import IO, Any

import topolane
from topolane._engine import InputError, Machine, Scheduler
from topolane.slurm.client import Slurm, SlurmError
from topolane.slurm.config import Config
from topolane.slurm.mirror import Mirror, Start
from topolane.slurm.records import Snapshot
from topolane.slurm.requests import placed

PATIENCE = 10.0
"""Seconds between two attempts to reach a Slurm that does not answer."""


class Log:
    """JSON lines, one per event."""

    def __init__(self, path: str | None) -> None:
        # Open as long as the daemon runs.
        self._file: IO[str] = sys.stderr if path is None else open(path, "a", encoding="utf-8")  # noqa: SIM115

    def write(self, event: str, **facts: Any) -> None:
        """Writes one event."""
        print(
            json.dumps({"time": round(time.time(), 3), "event": event, **facts}), file=self._file, flush=True
        )


def machine_of(config: Config) -> Machine:
    """The fabric: the configured file, or what Slurm itself says. Raises InputError."""
    if config.topology is not None:
        return topolane.machine(config.topology)
    try:
        done = subprocess.run(["scontrol", "show", "topology"], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InputError(f"scontrol show topology cannot be run ({error}): name a topology file") from error
    if done.returncode or not done.stdout.strip():
        said = done.stderr.strip() or "nothing"
        raise InputError(f"scontrol show topology says {said}: name a topology file")
    return Machine.parse(topology_conf(done.stdout), "scontrol show topology", "slurm")


def topology_conf(shown: str) -> str:
    """What `scontrol show topology` prints as a topology.conf: there a switch has nodes or switches, and
    its level is not named."""
    lines = []
    for line in shown.splitlines():
        words = [word for word in line.split() if not word.startswith("Level=")]
        if any(word.startswith("Switches=") for word in words):
            words = [word for word in words if not word.startswith("Nodes=")]
        lines.append(" ".join(words))
    return "\n".join(lines) + "\n"


class Daemon:
    """Decides for the partitions of one Slurm.

    dry_run: everything but the changes in Slurm. Raises InputError where machine, partitions or
    configuration do not go with what Slurm has; nothing is touched then.
    """

    def __init__(self, config: Config, slurm: Slurm, log: Log, *, dry_run: bool = False) -> None:
        self.config, self.slurm, self.log, self.dry_run = config, slurm, log, dry_run
        machine = machine_of(config)
        self.check(machine, slurm.snapshot())
        self.mirror = Mirror(
            machine,
            lambda: Scheduler(machine, config.policy, config.queue),
            frozenset(config.partitions),
            whole_nodes=config.whole_nodes,
            by_priority=config.by_priority,
        )
        self._nodes = {machine.node_name(node) for node in range(machine.nodes)}
        self.stopping = threading.Event()
        self._seen = 0.0

    def check(self, machine: Machine, snapshot: Snapshot) -> None:
        """Whether machine and partitions are Slurm's."""
        for name in self.config.partitions:
            if name not in snapshot.partitions:
                raise InputError(f"Slurm has no partition {name}; there are {', '.join(snapshot.partitions)}")
        ours = {machine.node_name(node) for node in range(machine.nodes)}
        for odd, text in (
            (sorted(ours - set(snapshot.nodes)), "is in the topology and not in Slurm"),
            (sorted(set(snapshot.nodes) - ours), "is in Slurm and not in the topology"),
        ):
            if odd:
                raise InputError(f"node {odd[0]} {text} ({len(odd)} nodes are)")

    def run(self) -> None:
        """Goes on until `stopping` is set."""
        self.log.write("started", version=self.slurm.version, dry_run=self.dry_run)
        while not self.stopping.is_set():
            begun = time.monotonic()
            pause = self.config.interval
            try:
                self.step()
            except SlurmError as error:
                self.log.write("slurm-error", error=str(error))
                pause = min(PATIENCE, 5 * pause)
            self.stopping.wait(max(pause - (time.monotonic() - begun), 0.0))
        self.log.write("stopped")

    def step(self) -> list[Start]:
        """Looks once and acts; answers what was released."""
        if not self._is_due():
            return []
        snapshot = self.slurm.snapshot()
        if snapshot.nodes.keys() != self._nodes:
            # A job on a node that is not on the tree would leave its other nodes free here.
            raise SlurmError("the nodes of Slurm are no longer those of the topology: start the daemon anew")
        self._seen = snapshot.time
        changes = self.mirror.update(snapshot)
        for job, reason in changes.unfit.items():
            self.log.write("unfit", job=job, reason=reason)
            self._tell(job, f"topolane: {reason}")
        for job in changes.escaped:
            self.log.write("escaped", job=job)
            if not self.dry_run:
                self.slurm.hold(job)
        begun = time.perf_counter()
        starts = self.mirror.decide(snapshot.time)
        seconds = time.perf_counter() - begun
        for start in starts:
            self.log.write("start", job=start.job, nodes=start.hosts, seconds=round(seconds, 6))
            self._release(start)
        return starts

    def _is_due(self) -> bool:
        """Whether anything may have changed since the last look: in Slurm, or by the clock alone."""
        begin = self.mirror.scheduler.next_begin(self._seen)
        due = self._seen == 0.0 or self.mirror.waits_for_slurm or (begin is not None and begin <= time.time())
        # Slurm's clock may be a second off ours, and counts whole seconds.
        return due or self.slurm.changed(self._seen - 2.0)

    def _release(self, start: Start) -> None:
        if self.dry_run:
            return
        try:
            comment = placed(start.hosts, as_asked=start.as_asked)
            self.slurm.release(start.job, start.hosts, len(start.nodes), comment)
        except SlurmError as error:
            self.log.write("not-released", job=start.job, error=str(error))
            self.mirror.take_back(start.job)

    def _tell(self, job: int, text: str) -> None:
        if self.dry_run:
            return
        try:
            self.slurm.comment(job, text)
        except SlurmError as error:
            self.log.write("not-told", job=job, error=str(error))
