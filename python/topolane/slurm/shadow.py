"""Slurm as a shadow sees it (topolane.cluster.shadow)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from topolane import sources, texts
from topolane._engine import InputError, Machine
from topolane.cluster.allocation import Allocation
from topolane.cluster.clients.scontrol import configuration
from topolane.cluster.hypothetical import Holder, Question
from topolane.cluster.shadow import Ended, Look, Started
from topolane.cluster.shadow_log import Past
from topolane.slurm import looks, plugin_machine, plugin_state
from topolane.slurm.candidates import HostLists, could_use
from topolane.slurm.client import Slurm, SlurmError
from topolane.slurm.fabric import slurm_tree, with_resources_of
from topolane.slurm.inspection import is_plugged, number_of
from topolane.slurm.records import SlurmJob, SlurmNode, Snapshot

LONGEST_GAP = 120.0
"""Seconds. Slurm keeps the records of jobs that have ended for MinJobAge, 300 s by default."""


class WatchedSlurm:
    """One Slurm.

    machine: the name or the file of the machine; None for the file that the plugin read, or else Slurm's tree.
    partitions: those whose jobs are asked about; none for all. interval: seconds between two looks. Raises InputError if machine or
    partitions do not fit this Slurm, and SlurmError.
    """

    system = "slurm"
    counts_slots = False
    error: type[Exception] = SlurmError

    def __init__(
        self,
        slurm: Slurm,
        *,
        machine: str | None = None,
        partitions: Sequence[str] = (),
        interval: float = 5.0,
    ) -> None:
        self._slurm, self._partitions = slurm, frozenset(partitions)
        self._first: Snapshot | None = slurm.snapshot()
        for name in partitions:
            if name not in self._first.partitions:
                known = ", ".join(self._first.partitions)
                raise InputError(f"Slurm has no partition {name}; there are {known}")
        self._plugin_files, conf_directory = _plugin_files()
        bare, source, self._machine_sum = _machine(machine, self._plugin_files, conf_directory)
        self.machine = with_resources_of(bare, self._first.nodes, source)
        self.facts: Mapping[str, str] = {"slurm": slurm.version}
        self._gap = max(LONGEST_GAP, 5 * interval)
        self._looks = looks.Looks(self._gap)
        self._lists = HostLists(self._first.nodes)
        self._seen: float | None = None

    @property
    def unknown(self) -> list[str]:
        """The nodes of Slurm that the machine does not name."""
        return [name for name in self._lists.names if self.machine.node_named(name) is None]

    def resume(self, past: Past) -> None:
        """Goes on from what an earlier shadow knew."""
        if past.until is None:
            return
        here, over = (
            {number: looks.WatchedRun(run.start, None) for number, run in some.items()}
            for some in (past.runs, past.over)
        )
        self._looks = looks.Looks(self._gap, here, over, past.since or 0.0)

    def look(self) -> Look | None:
        """What happened since the last look; None if nothing did. Raises SlurmError."""
        snapshot, self._first = self._first, None
        if snapshot is None:
            if self._seen is not None and not self._slurm.changed(self._seen):
                return None
            snapshot = self._slurm.snapshot()
            self._seen = snapshot.time
        if self._lists.names != tuple(snapshot.nodes):
            self._lists = HostLists(snapshot.nodes)
        events = self._looks.update(snapshot)
        placed = {
            name
            for event in events
            if isinstance(event, looks.SlurmStarted)
            for name in self._hosts(event.job)
        }
        state = None if self._plugin_files is None else plugin_state.read(self._plugin_files)
        return Look(
            [
                Ended(event.job, event.at)
                if isinstance(event, looks.SlurmEnded)
                else self._started(event, snapshot, state)
                for event in events
            ],
            self._out(snapshot, placed),
        )

    def forget(self) -> None:
        """The next look asks for everything."""
        self._seen = None

    def _out(self, snapshot: Snapshot, placed: Collection[str]) -> frozenset[int]:
        """The nodes that take no new jobs. A node that just got a job did take one."""
        return frozenset(
            node
            for node in range(self.machine.nodes)
            if (name := self.machine.node_name(node)) not in placed
            and not (name in snapshot.nodes and _takes_jobs(snapshot.nodes[name]))
        )

    def _started(
        self, event: looks.SlurmStarted, snapshot: Snapshot, state: plugin_state.PluginState | None
    ) -> Started:
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
            "nodes": self.machine.hostlist(nodes),
        }
        if share is not None:
            facts["share"] = share
        own = self._own_links(job, nodes, state)
        if own is not None and own.links:
            facts |= {"links": list(own.links), "bandwidth_share": own.bandwidth_share}
        plugin: dict[str, str | None] = {}
        if state is not None and state.jobs is not None:
            said = state.jobs.running.get(number_of(job))
            plugin["plugin"] = None if said is None else said.policy

        def question() -> tuple[Question, Mapping[str, Any]]:
            could, ignored = could_use(job, snapshot, self._lists)
            eligible = sorted(self._indices(could)[0])
            more: dict[str, Any] = {}
            if len(eligible) < self.machine.nodes:
                more["eligible"] = self.machine.hostlist(eligible)
            if ignored:
                more["ignored"] = ignored
            return Question(job.id, len(nodes), share, eligible), more

        links, bandwidth_share = ((), 1.0) if own is None else (tuple(own.links), own.bandwidth_share)
        asked_about = not self._partitions or not self._partitions.isdisjoint(job.partitions)
        return Started(
            facts,
            Holder(tuple(nodes), links, bandwidth_share, share=share),
            is_missed=event.is_missed or not asked_about,
            plugin=plugin,
            unknown=sorted(unknown),
            question=question,
        )

    def _hosts(self, job: SlurmJob) -> set[str]:
        """Its nodes; none if Slurm has taken one of them out of its configuration."""
        return self._lists.read(job.allocated) or set()

    def _indices(self, hosts: Collection[str]) -> tuple[list[int], set[str]]:
        """The nodes of the machine, and the names that it lacks."""
        found = {name: self.machine.node_named(name) for name in hosts}
        return sorted(node for node in found.values() if node is not None), {
            name for name, node in found.items() if node is None
        }

    def _own_links(
        self, job: SlurmJob, nodes: Sequence[int], state: plugin_state.PluginState | None
    ) -> Allocation | None:
        """The links that the plugin gave it, if the numbers in its file are those of this machine."""
        if state is None or state.links is None or state.links.machine_sum != self._machine_sum:
            return None
        try:
            own = plugin_state.owned_by(state.links, self.machine, self._machine_sum).get(number_of(job))
        except InputError:
            return None
        return own if own is not None and own.nodes == frozenset(nodes) else None


def _takes_jobs(node: SlurmNode) -> bool:
    return node.usable and "completing" not in node.words


def _plugin_files() -> tuple[Path | None, Path | None]:
    """Where the plugin writes its state, and the directory of slurm.conf; None unless it is the topology plugin of the Slurm of
    this machine.
    """
    try:
        conf = configuration()
    except InputError:
        return None, None
    if not is_plugged(conf):
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


def share_of(job: SlurmJob, cpus: Sequence[int]) -> dict[str, int] | None:
    """What it takes of each node; None for whole nodes. cpus: of its nodes."""
    if job.exclusive or not job.cores_held or job.cores_held >= max(cpus, default=0):
        return None
    return {"cores": job.cores_held, **dict(job.gres_held)}
