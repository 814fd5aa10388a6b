"""What the plugin does at one moment: what `topolane slurm status` prints in addition to the rows of all systems."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Collection

from topolane._engine import Machine
from topolane.cluster.links import touched
from topolane.cluster.status import Status
from topolane.cluster.view import Running, View
from topolane.slurm import controllers, links_out, shadows
from topolane.slurm.inspection import BOOT_TIME, OURS, STALE, TYPE, SlurmInspection, is_plugged
from topolane.slurm.plugin_build import releases_in
from topolane.slurm.plugin_state import ENDS, Counters, Recent
from topolane.slurm.view import view
from topolane.units import clock, duration, plural

BOOT_SECONDS = 5.0
"""How much earlier than slurmctld's boot time the plugin may have been loaded, if its counters do not name that slurmctld:
an earlier release wrote such counters.
"""


@dataclasses.dataclass(frozen=True)
class PluginLiveness:
    """Whether the plugin works. Times in seconds since 1970."""

    active: bool | None
    """None if that is not known."""
    stale: bool
    """Whether it has written nothing for long, while slurmctld answers and jobs wait for nodes."""
    why: str | None
    """Why it is not active, stale, not known to be active, or why the engine does not decide: a sentence."""
    topology: str | None
    """Slurm's TopologyPlugin."""
    since: float | None
    """When slurmctld loaded it."""
    written: float | None
    """When it wrote its state."""
    machine: str | None
    """Its machine file."""
    machine_nodes: int
    assumed: list[str]
    """What it assumed of the machine."""
    unnamed: int = 0
    """Slurm's nodes that the machine file does not name: stock Slurm chooses among them."""
    such_as: str | None = None
    """One of them; None if there are none."""
    decides: bool | None = None
    """Whether the engine decided the last calls (Recent); None without counters."""

    @property
    def is_well(self) -> bool:
        """Whether it is active and not stale, and the engine decides."""
        return self.active is True and not self.stale and self.decides is not False


@dataclasses.dataclass(frozen=True)
class Calls:
    """Slurm's calls of the plugin since slurmctld loaded it. Times of calls in nanoseconds, without the stock evaluation."""

    calls: int
    ends: dict[str, int]
    """By how they ended: see native/slurm/plugin/report.h."""
    stock: int
    """Calls that stock Slurm decided."""
    recent: Recent
    """The last of them."""
    links_unwritten: int
    median: int | None
    """Half of the calls took less."""
    p99: int | None
    longest: int
    limit: float | None
    """Nanoseconds of processor time that the engine may take in a call."""


@dataclasses.dataclass(frozen=True)
class JobOutage:
    """A running job and the failed links, by name, that it owns or may use."""

    job: str
    owns: list[str]
    may_use: list[str]


@dataclasses.dataclass(frozen=True)
class Outages:
    """The links that no new job may own."""

    failed: list[str]
    """Names of links."""
    reserved: int
    """How many are reserved for storage and services."""
    jobs: list[JobOutage]
    taken_over: int | None
    """How many links the plugin counts as out of service or reserved; None if that is not known."""
    wanted: int
    """How many it should."""


@dataclasses.dataclass(frozen=True)
class SlurmStatus(Status):
    """All that is known."""

    liveness: PluginLiveness
    calls: Calls | None
    outages: Outages | None
    backups: list[str]
    """The hosts of backup controllers."""
    files: list[str]
    """Files of this host that differ from those that slurmctld uses, a sentence each."""


def status(look: SlurmInspection) -> SlurmStatus:
    """The figures and rows of a look at Slurm and the plugin."""
    seen = view(look)
    return SlurmStatus(
        **vars(Status.of(known_machine(look), seen)),
        liveness=liveness(look),
        calls=calls(look),
        outages=outages(look, seen),
        backups=controllers.backups(look),
        files=controllers.differences(look),
    )


def known_machine(look: SlurmInspection) -> Machine | None:
    """The machine, if Slurm says who holds its nodes."""
    return None if look.snapshot is None else look.machine


def liveness(look: SlurmInspection) -> PluginLiveness:
    """Whether the plugin works."""
    counters = look.state.counters if look.state else None
    jobs = look.state.jobs if look.state else None
    active, why = _active(look, counters)
    written = counters.written if counters else None
    waits = sum(job.waits and job.reason in OURS for job in look.jobs.values())
    quiet = 0.0 if written is None else look.time - written
    stale = active is True and quiet > STALE and waits > 0
    decides = counters.recent.decides if counters else None
    if counters and active and not decides:
        why = _without_engine(counters.recent)
    if stale:
        why = (
            f"The plugin has written nothing for {duration(quiet)}, while slurmctld answers and "
            f"{plural(waits, 'job')} for which it looks for nodes {'waits' if waits == 1 else 'wait'}."
        )
    return PluginLiveness(
        active,
        stale,
        why,
        look.topology,
        counters.started if counters else None,
        written,
        jobs.machine if jobs else None,
        jobs.nodes if jobs else 0,
        list(jobs.assumed) if jobs else [],
        jobs.unnamed if jobs else 0,
        jobs.such_as if jobs else None,
        decides,
    )


def _without_engine(recent: Recent) -> str:
    """A sentence that the engine does not decide, and why."""
    return (
        f"The engine decided {recent.decided} of the last {plural(recent.calls, 'call')} that it should decide: "
        f"{recent.reasons}. The log of slurmctld says why."
    )


def _active(look: SlurmInspection, counters: Counters | None) -> tuple[bool | None, str | None]:
    """Whether the plugin is active, and if not, or if that is not known, why."""
    if look.topology is not None and not is_plugged(look.configuration):
        yaml = shadows.topology_yaml(look.configuration)
        why = f"Slurm's TopologyPlugin is {look.topology}, not {TYPE}"
        if yaml:
            why = f"There is a {yaml}, and PluginDir does not begin with the directory of copies that `install` made"
        return False, f"{why}: stock Slurm decides everything."
    if look.snapshot is None:
        return None, "slurmctld does not answer, so it is not known whether the plugin is active."
    is_old = counters is None or _are_former(look, counters)
    build = shadows.build(look.configuration)
    if is_old and build is not None and not build.exists():
        there = ", ".join(releases_in(build.parents[1]))
        return False, (
            f"Stock Slurm decides everything: there is no build of the plugin for Slurm {build.stem} in {build.parent}"
            f"{f', only for {there}' if there else ''}: `topolane slurm plugin build` makes it."
        )
    if counters is None:
        first = look.problems[0] if look.problems else "The plugin's state is not known."
        return None, f"It is not known whether the plugin is active. {first}"
    if counters.active is None:
        return None, "The plugin's counters do not say whether it is active: it is of an earlier release."
    if look.booted is not None and is_old:
        since = clock(look.booted, look.time)
        return (
            None,
            f"slurmctld started at {since} and has not asked the plugin for nodes yet: the next job makes it do so.",
        )
    if counters.active:
        return True, None
    said = look.state.jobs.why if look.state and look.state.jobs else None
    return False, f"Stock Slurm decides everything: {said or 'the log of slurmctld says why'}."


def _are_former(look: SlurmInspection, counters: Counters) -> bool:
    """Whether a slurmctld that has ended, or is no longer in control, wrote these counters."""
    if counters.booted is not None and look.booted is not None:
        return _written(counters.booted) != look.configuration["BOOT_TIME"]
    return counters.started is None or (
        look.booted is not None and counters.started < look.booted - BOOT_SECONDS
    )


def _written(seconds: int) -> str | None:
    """A time as Slurm writes it; None if it is none."""
    try:
        return time.strftime(BOOT_TIME, time.localtime(seconds))
    except (OverflowError, OSError, ValueError):
        return None


def calls(look: SlurmInspection) -> Calls | None:
    """Slurm's calls; None if the counters are not known."""
    counters = look.state.counters if look.state else None
    if counters is None:
        return None
    return Calls(
        counters["calls"],
        {name: counters[name] for name in ENDS},
        counters.stock,
        counters.recent,
        counters["links_unwritten"],
        counters.quantile(0.5),
        counters.quantile(0.99),
        counters["longest_nanoseconds"],
        look.conf.call_time * 1e9 if look.conf else None,
    )


def outages(look: SlurmInspection, seen: View) -> Outages | None:
    """The links out of service and the jobs that they touch; None if the machine or the links are not known."""
    if look.machine is None or look.out is None:
        return None
    jobs = look.state.jobs if look.state else None
    return Outages(
        links_out.names(look.machine, look.out.failed),
        len(look.out.reserved),
        touched_jobs(look, seen, look.out.failed),
        jobs.links_out if jobs else None,
        len(look.out.all),
    )


def touched_jobs(look: SlurmInspection, seen: View, links: Collection[int]) -> list[JobOutage]:
    """The running jobs that own or may use these links of the machine, which is known."""
    assert look.machine is not None
    jobs = seen.claiming
    if look.snapshot is None:
        # Without Slurm the nodes of jobs with links of their own are known all the same.
        running = look.state.jobs.running if look.state and look.state.jobs else {}
        jobs = [
            Running(job, str(job), "", "", tuple(sorted(own.nodes)), 0.0, None, links=tuple(own.links))
            for job, own in look.owned.items()
            if job in running
        ]
    names = {job.id: job.name for job in jobs}
    return [
        JobOutage(
            names[job], links_out.names(look.machine, one.owns), links_out.names(look.machine, one.may_use)
        )
        for job, one in sorted(touched(look.machine, links, jobs).items())
    ]
