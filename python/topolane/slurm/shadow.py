"""The shadow: at each start of a job in Slurm, where a policy would have placed it. It reads Slurm and changes nothing."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from topolane import sources, texts
from topolane._engine import InputError, Machine
from topolane.live.allocation import Allocation
from topolane.live.clients.scontrol import configuration
from topolane.live.shadows import Placement, answered
from topolane.slurm import plugin_machine, plugin_state
from topolane.slurm.candidates import HostLists, could_use
from topolane.slurm.client import Slurm, SlurmError
from topolane.slurm.fabric import slurm_tree, with_resources_of
from topolane.slurm.hypothetical import Hypothetical, Question
from topolane.slurm.inspection import TYPE, number_of
from topolane.slurm.looks import Ended, Looks, Started
from topolane.slurm.records import Job, Node, Snapshot

LONGEST_GAP = 120.0
"""Seconds. Slurm keeps the records of jobs that have ended for MinJobAge, 300 s by default."""
PATIENCE = 10.0
"""Seconds between two attempts to reach a Slurm that does not answer."""
SHARE_OF_TIME = 4
"""The shadow waits at least 4 times as long as Slurm took to answer, so that it is no burden."""


class Shadow:
    """A policy in the shadow of one Slurm.

    machine: the name or the file of the machine; None for the file that the plugin read, or else Slurm's tree.
    partitions: those whose jobs are asked about; none for all. write: gets every event of the log. tell: gets each event of a
    start, and the number of its nodes. Raises InputError if machine, policy or partitions do not fit this Slurm.
    """

    def __init__(
        self,
        slurm: Slurm,
        policy: str,
        *,
        machine: str | None = None,
        partitions: Sequence[str] = (),
        min_bandwidth: float | None = None,
        interval: float = 5.0,
        write: Callable[..., None],
        tell: Callable[[Mapping[str, Any], int], None] = lambda *_: None,
    ) -> None:
        self._slurm, self._partitions, self._interval = slurm, frozenset(partitions), interval
        self._write, self._tell = write, tell
        self.stopping = threading.Event()
        snapshot = slurm.snapshot()
        for name in partitions:
            if name not in snapshot.partitions:
                raise InputError(f"Slurm has no partition {name}; there are {', '.join(snapshot.partitions)}")
        self._plugin_files, conf_directory = _plugin_files()
        bare, source, self._machine_sum = _machine(machine, self._plugin_files, conf_directory)
        self._machine = with_resources_of(bare, snapshot.nodes, source)
        self._hypothetical = Hypothetical(self._machine, policy, min_bandwidth)
        self._looks = Looks(max(LONGEST_GAP, 5 * interval))
        self._lists = HostLists(snapshot.nodes)
        self._seen: float | None = None
        facts = {"min_bandwidth": min_bandwidth} if min_bandwidth is not None else {}
        write("shadow", machine=self._machine.to("toml"), policy=policy, slurm=slurm.version, **facts)
        self._follow(snapshot)

    @property
    def unknown(self) -> list[str]:
        """The nodes of Slurm that the machine does not name."""
        return [name for name in self._lists.names if self._machine.node_named(name) is None]

    @property
    def jobs(self) -> int:
        """How many jobs hold nodes."""
        return self._hypothetical.jobs

    def run(self) -> None:
        """Looks until `stopping` is set. A Slurm that does not answer is asked again."""
        took = 0.0
        while not self.stopping.wait(max(self._interval, SHARE_OF_TIME * took)):
            begun = time.monotonic()
            try:
                self.look()
            except SlurmError as error:
                self._write("slurm-error", error=str(error))
                self._seen, took = None, PATIENCE / SHARE_OF_TIME
            else:
                took = time.monotonic() - begun
        self._write("stopped")

    def look(self) -> None:
        """Looks once, and asks the policy about each job that has started since. Raises SlurmError."""
        if self._seen is not None and not self._slurm.changed(self._seen):
            return
        snapshot = self._slurm.snapshot()
        self._seen = snapshot.time
        if self._lists.names != tuple(snapshot.nodes):
            self._lists = HostLists(snapshot.nodes)
        self._follow(snapshot)

    def _follow(self, snapshot: Snapshot) -> None:
        events = self._looks.update(snapshot)
        placed = {name for event in events if isinstance(event, Started) for name in self._hosts(event.job)}
        self._serve(snapshot, placed)
        state = None if self._plugin_files is None else plugin_state.read(self._plugin_files)
        for event in events:
            if isinstance(event, Ended):
                self._write("ends", id=event.job, at=event.at)
                self._hypothetical.end(event.job)
            else:
                self._started(event, snapshot, state)

    def _serve(self, snapshot: Snapshot, placed: Collection[str]) -> None:
        """Takes the nodes out of service that take no new jobs. A node that just got a job did take one."""
        out = frozenset(
            node
            for node in range(self._machine.nodes)
            if (name := self._machine.node_name(node)) not in placed
            and not (name in snapshot.nodes and _takes_jobs(snapshot.nodes[name]))
        )
        if out != self._hypothetical.out:
            self._write("service", out=self._machine.hostlist(sorted(out)))
            self._hypothetical.serve(out)

    def _started(self, event: Started, snapshot: Snapshot, state: plugin_state.PluginState | None) -> None:
        job, hosts = event.job, self._hosts(event.job)
        nodes, unknown = self._indices(hosts)
        share = share_of(job, [snapshot.nodes[name].cpus for name in hosts])
        facts: dict[str, Any] = {
            "id": job.id,
            "job": job.number,
            "partition": ",".join(job.partitions),
            "submit": job.submit,
            "start": job.start,
            "walltime": job.walltime,
            "nodes": self._machine.hostlist(nodes),
        }
        if share is not None:
            facts["share"] = share
        own = self._own_links(job, nodes, state)
        if own is not None and own.links:
            facts |= {"links": list(own.links), "bandwidth_share": own.bandwidth_share}
        links, bandwidth_share = (
            (() if own is None else own.links),
            1.0 if own is None else own.bandwidth_share,
        )
        if event.is_missed or (self._partitions and self._partitions.isdisjoint(job.partitions)):
            self._write("holds", **facts)
        else:
            if state is not None and state.jobs is not None:
                running = state.jobs.running.get(number_of(job))
                facts["plugin"] = None if running is None else running.policy
            if nodes:
                facts |= self._slurms(self._hypothetical.placed(job.id, nodes, links, bandwidth_share))
            if unknown or not nodes:
                names = ", ".join(sorted(unknown)[:3]) or "none that is known"
                facts["not_asked"] = f"the machine does not name its nodes: {names}"
            else:
                could, ignored = could_use(job, snapshot, self._lists)
                eligible = sorted(self._indices(could)[0])
                if len(eligible) < self._machine.nodes:
                    facts["eligible"] = self._machine.hostlist(eligible)
                if ignored:
                    facts["ignored"] = ignored
                answer = self._hypothetical.ask(Question(job.id, len(nodes), share, eligible))
                facts |= answered(answer, self._machine)
            self._write("start", **facts)
            self._tell(facts, len(nodes))
        self._hypothetical.hold(job.id, nodes, share, links, bandwidth_share)

    @staticmethod
    def _slurms(placed: Placement) -> dict[str, Any]:
        return {"aph": placed.aph, "shares_with": placed.shares_with}

    def _hosts(self, job: Job) -> set[str]:
        """Its nodes; none if Slurm has taken one of them out of its configuration."""
        return self._lists.read(job.allocated) or set()

    def _indices(self, hosts: Collection[str]) -> tuple[list[int], set[str]]:
        """The nodes of the machine, and the names that it lacks."""
        found = {name: self._machine.node_named(name) for name in hosts}
        return sorted(node for node in found.values() if node is not None), {
            name for name, node in found.items() if node is None
        }

    def _own_links(
        self, job: Job, nodes: Sequence[int], state: plugin_state.PluginState | None
    ) -> Allocation | None:
        """The links that the plugin gave it, if the numbers in its file are those of this machine."""
        if state is None or state.links is None or state.links.machine_sum != self._machine_sum:
            return None
        try:
            own = plugin_state.owned_by(state.links, self._machine, self._machine_sum).get(number_of(job))
        except InputError:
            return None
        return own if own is not None and own.nodes == frozenset(nodes) else None


def _takes_jobs(node: Node) -> bool:
    return node.usable and "completing" not in node.words


def _plugin_files() -> tuple[Path | None, Path | None]:
    """Where the plugin writes its state, and the directory of slurm.conf; None unless it is the topology plugin of the Slurm of
    this machine.
    """
    try:
        conf = configuration()
    except InputError:
        return None, None
    if conf.get("TopologyPlugin") != TYPE:
        return None, None
    return Path(conf["StateSaveLocation"]), Path(conf.get("SLURM_CONF", "/etc/slurm/slurm.conf")).parent


def _machine(
    source: str | None, plugin_files: Path | None, conf_directory: Path | None
) -> tuple[Machine, str, int | None]:
    """The machine, its name in errors, and the plugin's sum of its file; None if it is from no file. Raises InputError."""
    if source is not None:
        file = Path(source)
        total = plugin_state.sum_of(texts.read_bytes(file, texts.LARGE)) if file.is_file() else None
        return sources.machine(source), source, total
    state = None if plugin_files is None else plugin_state.read(plugin_files)
    if state is not None and state.jobs is not None and state.jobs.machine is not None:
        try:
            read = plugin_machine.machine_of(state.jobs, conf_directory)
        except InputError:
            pass  # the plugin's files are not on this machine, or have changed
        else:
            return read.machine, state.jobs.machine, read.sum
    return slurm_tree(), "scontrol show topology", None


def share_of(job: Job, cpus: Sequence[int]) -> dict[str, int] | None:
    """What it takes of each node; None for whole nodes. cpus: of its nodes."""
    if job.exclusive or not job.cores_held or job.cores_held >= max(cpus, default=0):
        return None
    return {"cores": job.cores_held, **dict(job.gres_held)}
