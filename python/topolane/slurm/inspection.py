"""One look at Slurm and at the plugin's state files: what status, explain and the metrics start from."""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path

from topolane import texts
from topolane._engine import InputError, Machine
from topolane.cluster.allocation import Allocation
from topolane.cluster.clients.scontrol import configuration
from topolane.cluster.decided import STOCK, Decided
from topolane.cluster.view import SHARED, UNKNOWN
from topolane.slurm import conf_file, links_out, plugin_machine, plugin_state, shadows
from topolane.slurm.client import SlurmError, connect
from topolane.slurm.links_out import LinksOut
from topolane.slurm.plugin_conf import PluginConf
from topolane.slurm.plugin_state import PluginState
from topolane.slurm.records import SlurmJob, Snapshot

TYPE = "topology/topolane"


def is_plugged(configuration: Mapping[str, str]) -> bool:
    """Whether slurmctld loads the plugin, by its own name or under those of Slurm's plugins."""
    if not shadows.topology_yaml(configuration) and configuration.get("TopologyPlugin") == TYPE:
        return True
    return shadows.are_loaded(configuration)


BOOT_TIME = "%Y-%m-%dT%H:%M:%S"
"""How Slurm writes the time at which slurmctld started."""

STALE = 60.0
"""Seconds. The plugin writes its state every 10 seconds at least."""

OURS = ("Resources", "Priority", "None", "")
"""Slurm's reasons of jobs for which it looks for nodes: only then can a refusal of the plugin be why a job waits."""


@dataclasses.dataclass(frozen=True)
class InspectionSettings:
    """Where to look. None: as slurmctld says."""

    state: Path | None = None
    """The directory of the plugin's state."""
    slurmrestd: str | None = None
    """The address of slurmrestd; None for Slurm's commands."""
    token_file: str | None = None


@dataclasses.dataclass(frozen=True)
class SlurmInspection:
    """Slurm and the plugin at one moment. What could not be read is None, and a sentence in `problems` says why."""

    time: float
    """By Slurm's clock, or else by that of this machine, seconds since 1970."""
    configuration: dict[str, str]
    """Slurm's settings by name; empty if they are not known."""
    snapshot: Snapshot | None
    state: PluginState | None
    machine: Machine | None
    owned: dict[int, Allocation]
    """The links of jobs, by the plugin's numbers of them."""
    problems: tuple[str, ...]
    out: LinksOut | None = None
    """The links that no new job may own."""

    @property
    def topology(self) -> str | None:
        """Slurm's TopologyPlugin."""
        return self.configuration.get("TopologyPlugin")

    @property
    def conf(self) -> PluginConf | None:
        """The configuration of the plugin."""
        return self.state.jobs.conf if self.state and self.state.jobs else None

    @property
    def conf_file(self) -> Path:
        """The path of topolane.conf."""
        return slurm_conf_of(self.configuration).parent / "topolane.conf"

    @property
    def booted(self) -> float | None:
        """When slurmctld started, seconds since 1970."""
        try:
            return time.mktime(time.strptime(self.configuration["BOOT_TIME"], BOOT_TIME))
        except (KeyError, ValueError, OverflowError):
            return None

    @cached_property
    def jobs(self) -> dict[int, SlurmJob]:
        """Slurm's jobs by the plugin's numbers. The waiting tasks of an array are one, the first of them."""
        found: dict[int, SlurmJob] = {}
        for job in [] if self.snapshot is None else self.snapshot.jobs.values():
            number = number_of(job)
            if number not in found or job.holds_nodes:
                found[number] = job
        return found

    @cached_property
    def holders(self) -> dict[int, list[int]]:
        """The nodes of the machine that each job holds, by the plugin's number of the job."""
        machine = self.machine
        if machine is None:
            return {}
        held = {job: on_machine(one.nodes, machine) for job, one in self.jobs.items() if one.holds_nodes}
        return {job: nodes for job, nodes in held.items() if nodes}

    @cached_property
    def allocations(self) -> dict[int, Allocation]:
        """The links of the jobs that hold nodes."""
        return {
            job: own
            for job, own in self.owned.items()
            if own.links and own.nodes.issuperset(self.holders.get(job, [-1]))
        }

    @cached_property
    def closed(self) -> frozenset[int]:
        """Nodes of the machine that take no new jobs, including those that Slurm does not have."""
        machine, snapshot = self.machine, self.snapshot
        if machine is None or snapshot is None:
            return frozenset()
        usable = {name for name, node in snapshot.nodes.items() if node.usable}
        return frozenset(node for node in range(machine.nodes) if machine.node_name(node) not in usable)

    def decided(self, job: SlurmJob) -> Decided | None:
        """What the plugin published about a job; None if it has not decided, or has not written it yet."""
        jobs, number = self.state.jobs if self.state else None, number_of(job)
        found = None
        if jobs and (job.holds_nodes or job.waits):
            found = (jobs.running if job.holds_nodes else jobs.waiting).get(number)
        if found is None and job.holds_nodes and job.is_stock:
            return Decided(STOCK, "the engine could not answer when it started: its SystemComment says why")
        return found

    @property
    def default_link_use(self) -> str:
        """How a job uses links of which the plugin has said nothing: it may be isolated if the plugin decides."""
        jobs = self.state.jobs if self.state else None
        return UNKNOWN if jobs is not None and jobs.why is None else SHARED


def inspect(settings: InspectionSettings) -> SlurmInspection:
    """Reads what can be read. Raises InputError for an address or a token file that cannot be used."""
    problems: list[str] = []

    def tried(read: Callable[[], dict[str, str]], otherwise: dict[str, str]) -> dict[str, str]:
        try:
            return read()
        except InputError as error:
            if settings.slurmrestd is None:
                problems.append(f"{texts.sentence(str(error))}: is slurmctld down?")
            return otherwise

    known = tried(configuration, {})
    snapshot = _snapshot(settings, problems) if known or settings.slurmrestd else None
    directory = settings.state or _state_directory(known)
    if directory is None:
        problems.append(
            "The plugin's state is not known: name the StateSaveLocation of slurmctld with --state."
        )
    state = None if directory is None else plugin_state.read(directory)
    problems += () if state is None else state.problems
    machine, owned, out = _machine(state, slurm_conf_of(known), problems)
    return SlurmInspection(
        time.time() if snapshot is None else snapshot.time,
        known,
        snapshot,
        state,
        machine,
        owned,
        tuple(problems),
        out,
    )


def _snapshot(settings: InspectionSettings, problems: list[str]) -> Snapshot | None:
    try:
        slurm = connect(settings.slurmrestd, settings.token_file)
        try:
            return slurm.snapshot()
        finally:
            slurm.close()
    except SlurmError as error:
        problems.append(f"{texts.sentence(str(error))}: is slurmctld down?")
        return None


def _state_directory(known: dict[str, str]) -> Path | None:
    """StateSaveLocation, by slurmctld or, if it does not answer, by slurm.conf."""
    location = known.get("StateSaveLocation")
    if location is None:
        try:
            location = conf_file.value(slurm_conf_of(known), "StateSaveLocation")
        except InputError:
            return None
    return None if location is None or "%" in location else Path(location)


def slurm_conf_of(known: dict[str, str]) -> Path:
    """The path of slurm.conf."""
    return Path(known.get("SLURM_CONF") or os.environ.get("SLURM_CONF") or "/etc/slurm/slurm.conf")


def _machine(
    state: PluginState | None, slurm_conf: Path, problems: list[str]
) -> tuple[Machine | None, dict[int, Allocation], LinksOut | None]:
    """The machine, the links that jobs own, and those that no new job may own."""
    if state is None or state.jobs is None or state.jobs.machine is None:
        return None, {}, None
    try:
        read = plugin_machine.machine_of(state.jobs, slurm_conf.parent)
    except InputError as error:
        problems.append(f"{texts.sentence(str(error))}.")
        return None, {}, None
    machine = read.machine
    owned: dict[int, Allocation] = {}
    out = None
    try:
        owned = plugin_state.owned_by(state.links, machine, read.sum)
    except InputError as error:
        problems.append(f"{texts.sentence(str(error))}.")
    try:
        out = links_out.read(state.directory, machine, read.sum)
    except InputError as error:
        problems.append(f"{texts.sentence(str(error))}.")
    return machine, owned, out


def number_of(job: SlurmJob) -> int:
    """The number by which the plugin knows a job: that of its record in slurmctld."""
    return int(job.record.partition("_")[0])


def on_machine(hosts: str, machine: Machine) -> list[int]:
    """The nodes in a hostlist that the machine has, ascending."""
    try:
        return machine.nodes_named(hosts) if hosts else []
    except InputError:
        found = (machine.node_named(name) for name in names_in(hosts))
        return sorted(node for node in found if node is not None)


def names_in(hosts: str) -> list[str]:
    """The names in a hostlist; none if it is not one."""
    try:
        listed = Machine.parse(f"SwitchName=all Nodes={hosts}\n", "hosts", "slurm")
    except InputError:
        return []
    return [listed.node_name(node) for node in range(listed.nodes)]
