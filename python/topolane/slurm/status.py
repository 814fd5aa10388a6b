"""What the plugin does at one moment: the figures and rows that `topolane slurm status` prints."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection

from topolane._engine import LinkUse
from topolane.cluster.counts import NodeCounts, Sharing
from topolane.cluster.links import Links, touched
from topolane.slurm import controllers, links_out
from topolane.slurm.inspection import OURS, STALE, TYPE, Inspection, number_of
from topolane.slurm.plugin_state import ENDS, Counters, Recent
from topolane.slurm.records import Job
from topolane.slurm.wait_reasons import wait_reason
from topolane.units import clock, duration, plural

BOOT_SECONDS = 5.0
"""How much earlier than slurmctld's boot time the plugin may have been loaded."""


@dataclasses.dataclass(frozen=True)
class Liveness:
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
    """Those that stock Slurm decided."""
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
class RunningRow:
    """A job on its nodes. Times in seconds since 1970."""

    job: str
    name: str
    user: str
    partition: str
    nodes: int
    hosts: str
    level: int | None
    """1 if it lies in one leaf (T1), 2 if in one pod (T2), ...; None if the machine is not known."""
    home: str | None
    """The lowest group that contains it."""
    policy: str | None
    link_use: str
    """`isolated`, `shared` or `none`."""
    links: int
    """Its own links between switches."""
    bandwidth_share: float | None
    """Its share of full bandwidth on them; None if it has none."""
    may_meet: list[str]
    """Other jobs that may use the same links."""
    start: float
    expected_end: float | None


@dataclasses.dataclass(frozen=True)
class WaitingRow:
    """A job that waits. Times in seconds since 1970."""

    job: str
    record: str
    """The waiting tasks of an array have one record."""
    name: str
    user: str
    nodes: int
    submit: float
    reason: str
    """Slurm's reason."""
    kind: str | None
    """The kind of the plugin's refusal; None if it did not refuse the job, or the job waits for something else."""
    refused: float | None
    """When the plugin refused it last."""
    why: str
    policy: str | None
    expected_start: float | None
    """As Slurm expects it."""


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
class Status:
    """All that is known."""

    time: float
    liveness: Liveness
    calls: Calls | None
    running: list[RunningRow]
    waiting: list[WaitingRow]
    """Those of highest priority first."""
    nodes: NodeCounts | None
    sharing: Sharing | None
    problems: list[str]
    """What could not be read, a sentence each."""
    outages: Outages | None = None
    backups: list[str] = dataclasses.field(default_factory=list)
    """The hosts of backup controllers."""
    files: list[str] = dataclasses.field(default_factory=list)
    """Files of this host that differ from those that slurmctld uses, a sentence each."""


def status(look: Inspection) -> Status:
    """The figures and rows of a look at Slurm and the plugin."""
    jobs = [] if look.snapshot is None else list(look.snapshot.jobs.values())
    running = sorted((job for job in jobs if job.holds_nodes), key=lambda job: (job.start, job.id))
    waiting = sorted((job for job in jobs if job.waits), key=lambda job: (-job.priority, job.submit, job.id))
    links = links_of(look)
    return Status(
        look.time,
        liveness(look),
        calls(look),
        [_running(look, job, links) for job in running],
        [_waiting(look, job) for job in waiting],
        nodes(look),
        sharing(look),
        list(look.problems),
        outages(look),
        controllers.backups(look),
        controllers.differences(look),
    )


def liveness(look: Inspection) -> Liveness:
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
    return Liveness(
        active,
        stale,
        why,
        look.topology,
        counters.started if counters else None,
        written,
        jobs.machine if jobs else None,
        jobs.nodes if jobs else 0,
        list(jobs.assumed) if jobs else [],
        decides,
    )


def _without_engine(recent: Recent) -> str:
    """That the engine does not decide, and why."""
    return (
        f"The engine decided {recent.decided} of the last {plural(recent.calls, 'call')} that it should decide: "
        f"{recent.reasons}. The log of slurmctld says why."
    )


def _active(look: Inspection, counters: Counters | None) -> tuple[bool | None, str | None]:
    """Whether the plugin is active, and if not, or if that is not known, why."""
    if look.topology not in (None, TYPE):
        return (
            False,
            f"Slurm's TopologyPlugin is {look.topology}, not {TYPE}: stock Slurm decides everything.",
        )
    if look.snapshot is None:
        return None, "slurmctld does not answer, so it is not known whether the plugin is active."
    if counters is None:
        first = look.problems[0] if look.problems else "The plugin's state is not known."
        return None, f"It is not known whether the plugin is active. {first}"
    if counters.active is None:
        return None, "The plugin's counters do not say whether it is active: it is of an earlier release."
    if (
        look.booted is not None
        and counters.started is not None
        and counters.started < look.booted - BOOT_SECONDS
    ):
        since = clock(look.booted, look.time)
        return (
            None,
            f"slurmctld started at {since} and has not asked the plugin for nodes yet: the next job makes it do so.",
        )
    if counters.active:
        return True, None
    said = look.state.jobs.why if look.state and look.state.jobs else None
    return False, f"Stock Slurm decides everything: {said or 'the log of slurmctld says why'}."


def calls(look: Inspection) -> Calls | None:
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


def links_of(look: Inspection) -> Links | None:
    """Which jobs may use which links; None if the machine is not known."""
    if look.machine is None:
        return None
    holders = {job: nodes for job, nodes in look.holders.items() if job in look.claiming}
    return Links(look.machine, holders, look.names, look.allocations)


def nodes(look: Inspection) -> NodeCounts | None:
    """Counts the nodes of the machine; None if it or Slurm is not known."""
    if look.machine is None or look.snapshot is None:
        return None
    busy = {node for held in look.holders.values() for node in held}
    closed = look.closed - busy
    return NodeCounts(look.machine.nodes - len(busy) - len(closed), len(busy), len(closed))


def sharing(look: Inspection) -> Sharing | None:
    """Counts links by their users; None if the machine or Slurm is not known."""
    if look.machine is None or look.snapshot is None:
        return None
    own = look.allocations
    claims = [
        (job, held, own[job].links if job in own else ())
        for job, held in look.holders.items()
        if job in look.claiming
    ]
    use = LinkUse(look.machine, claims)
    meeting = [job for job in sorted(look.isolated) if any(others for _, others in use.meetings(job))]
    return Sharing(
        sum(len(one.links) for one in own.values()), use.shared, [look.names[job] for job in meeting]
    )


def outages(look: Inspection) -> Outages | None:
    """The links out of service and the jobs that they touch; None if the machine or the links are not known."""
    if look.machine is None or look.out is None:
        return None
    jobs = look.state.jobs if look.state else None
    return Outages(
        links_out.names(look.machine, look.out.failed),
        len(look.out.reserved),
        touched_jobs(look, look.out.failed),
        jobs.links_out if jobs else None,
        len(look.out.all),
    )


def touched_jobs(look: Inspection, links: Collection[int]) -> list[JobOutage]:
    """The running jobs that own or may use these links of the machine, which is known."""
    assert look.machine is not None
    holders = {job: nodes for job, nodes in look.holders.items() if job in look.claiming}
    own = look.allocations
    if look.snapshot is None:
        # Without Slurm the nodes of jobs with links of their own are known all the same.
        running = look.state.jobs.running if look.state and look.state.jobs else {}
        own = {job: given for job, given in look.owned.items() if job in running}
        holders = {job: sorted(given.nodes) for job, given in own.items()}
    found = touched(look.machine, links, holders, own)
    return [
        JobOutage(
            look.names.get(job, str(job)),
            links_out.names(look.machine, one.owns),
            links_out.names(look.machine, one.may_use),
        )
        for job, one in sorted(found.items())
    ]


def policy_of(look: Inspection, job: Job) -> str | None:
    """The policy of a job; None if it is not known."""
    jobs, number = look.state.jobs if look.state else None, number_of(job)
    if jobs and job.holds_nodes and number in jobs.running:
        return jobs.running[number].policy
    if jobs and job.waits and number in jobs.waiting:
        return jobs.waiting[number].policy
    if job.holds_nodes and job.is_stock:
        return "stock"
    found = look.conf.policy(job) if look.conf else None
    return found[0] if found else None


def _running(look: Inspection, job: Job, links: Links | None) -> RunningRow:
    number = number_of(job)
    held, own = look.holders.get(number, []), look.allocations.get(number)
    level, home = links.home(held) if links and held else (None, None)
    met = links.of(number) if links and held and number in look.claiming else []
    return RunningRow(
        *(job.number, job.name, job.user, ",".join(job.partitions)),
        *(job.fewest_nodes, job.nodes, level, home),
        policy=policy_of(look, job),
        link_use=look.link_use(number),
        links=len(own.links) if own else 0,
        bandwidth_share=own.bandwidth_share if own else None,
        may_meet=sorted({other for _, others in met for other in others}),
        start=job.start,
        expected_end=None if job.walltime is None else job.start + job.walltime,
    )


def _waiting(look: Inspection, job: Job) -> WaitingRow:
    wait = wait_reason(look, job)
    return WaitingRow(
        *(job.number, job.record, job.name, job.user),
        *(wait.refused.wanted if wait.refused else job.fewest_nodes, job.submit, wait.slurm),
        kind=wait.refused.kind if wait.refused else None,
        refused=wait.refused.time if wait.refused else None,
        why=wait.words,
        policy=policy_of(look, job),
        expected_start=job.expected_start if job.expected_start > look.time else None,
    )
