"""The plan of the twin's experiment: users, limits, partitions, jobs, reservations and failures."""

from __future__ import annotations

import dataclasses
import math
import random
from pathlib import Path

import workload
from topolane import InputError

ACCOUNTS = {
    "physics": (50, ("games", "man", "lp")),
    "biology": (30, ("mail", "news", "uucp")),
    "teaching": (20, ("proxy", "backup")),
}
"""Shares and users of each account. These users exist on every Debian, because Slurm only runs jobs of
existing users.
"""
STUDENT = ("physics", "lp")
"""Account and user of the jobs in a reservation."""
QOS = {
    "normal": "Priority=0 MaxJobsPerUser=20",
    "short": "Priority=100 MaxJobsPerUser=4 GrpTRES=node={half}",
    "large": "Priority=40 MaxTRESPerUser=node={third} GrpTRES=node={most}",
}
BF_INTERVAL = 30
"""In seconds; Slurm's default."""
SETTINGS = {
    "AccountingStorageEnforce": "associations,limits,qos",
    "PriorityType": "priority/multifactor",
    "PriorityDecayHalfLife": "0-00:20:00",
    "PriorityCalcPeriod": "00:01:00",
    "PriorityMaxAge": "0-01:00:00",
    "PriorityWeightAge": 20000,
    "PriorityWeightFairShare": 2000,
    "PriorityWeightJobSize": 1000,
    "PriorityWeightPartition": 1000,
    "PriorityWeightQOS": 1000,
    "ReturnToService": 1,  # a node that the plan takes down stays down until the plan says otherwise
    "SchedulerParameters": f"bf_interval={BF_INTERVAL},bf_resolution={BF_INTERVAL},bf_continue,bf_max_job_test=1000,"
    "kill_invalid_depend",
}
"""Settings of slurm.conf in addition to those of tests/slurm/config.sh. A minute is the shortest time over
which Slurm decays usage.
"""
SCALED_TO = 0.45
"""The nodes of the log's widest job after scaling, as a fraction of the machine."""
WIDEST = 0.1
"""The most nodes of a job, as a fraction of the machine. A single wide job moves many others."""
SUBMITTED = 0.7
"""The fraction of the time in which jobs are submitted; afterwards the queue empties."""
LONGEST = 0.06
"""The run time of the longest job, as a fraction of the time."""


@dataclasses.dataclass(frozen=True)
class Partitions:
    """Two partitions that share nodes: most of the machine, and a smaller one whose jobs have priority."""

    batch: tuple[int, int]
    debug: tuple[int, int]
    """First and last node of each, counted from 1."""
    debug_minutes: int = 3
    debug_nodes: int = 4

    @staticmethod
    def of(nodes: int) -> Partitions:
        return Partitions((1, nodes - nodes // 12), (nodes * 3 // 4 + 1, nodes))

    def settings(self) -> dict[str, str]:
        """The settings of each in slurm.conf."""
        (first, last), (debug, debug_last) = self.batch, self.debug
        return {
            "pbatch": f"Nodes={{prefix}}[{first}-{last}] Default=YES MaxTime=60 PriorityTier=1 "
            "PriorityJobFactor=1 OverSubscribe=EXCLUSIVE",
            "pdebug": f"Nodes={{prefix}}[{debug}-{debug_last}] MaxTime={self.debug_minutes} "
            f"MaxNodes={self.debug_nodes} PriorityTier=10 PriorityJobFactor=10 OverSubscribe=EXCLUSIVE",
        }


@dataclasses.dataclass(frozen=True)
class Job:
    """A job as it is submitted. Times are in seconds from the start."""

    number: int
    submit: float
    nodes: int
    run: float
    minutes: int
    """The time limit, in whole minutes as Slurm requires."""
    account: str
    user: str
    qos: str
    partition: str
    after: tuple[str, int] | None = None
    """`afterok` or `afterany`, and the number of the other job."""
    begin: int = 0
    """Seconds after its submission before which it may not start."""
    nice: int = 0
    reservation: str = ""
    options: tuple[str, ...] = ()
    """Further options of sbatch."""
    cancelled: float = math.inf
    """When its user cancels it, if it still waits then."""


@dataclasses.dataclass(frozen=True)
class Event:
    """A change of nodes at a second: they go out of service or come back."""

    at: float
    state: str
    nodes: tuple[int, int]


@dataclasses.dataclass(frozen=True)
class Reservation:
    name: str
    start: int
    minutes: int
    nodes: tuple[int, int]
    who: str
    """Users and flags, in scontrol's notation."""


@dataclasses.dataclass(frozen=True)
class Site:
    """What a cluster's administrator has set."""

    partitions: dict[str, str]
    """The settings of each partition. `{prefix}` stands for the first part of the nodes' names."""
    settings: dict[str, object]
    """Settings of slurm.conf in addition to those of tests/slurm/config.sh."""
    qos: dict[str, str]
    """The limits of each QOS, in sacctmgr's notation. A QOS names only those before it."""
    options: tuple[str, ...] = ()
    """Further options of cluster.sh."""

    def lines(self, prefix: str) -> str:
        """The lines of the partitions for slurm.conf."""
        named = ((name, settings.format(prefix=prefix)) for name, settings in self.partitions.items())
        return "".join(f"PartitionName={name} State=UP {settings}\n" for name, settings in named)

    @property
    def interval(self) -> float:
        """Seconds between two turns of backfill."""
        given = dict(
            each.partition("=")[::2] for each in str(self.settings["SchedulerParameters"]).split(",")
        )
        return float(given["bf_interval"])


@dataclasses.dataclass(frozen=True)
class Plan:
    """What happens on a cluster."""

    nodes: int
    seconds: float
    jobs: list[Job]
    reservations: list[Reservation]
    events: list[Event]
    site: Site


@dataclasses.dataclass(frozen=True)
class TwinPlan(Plan):
    """The plan of the twin of 72 nodes."""

    partitions: Partitions


def plan(
    nodes: int,
    jobs: int,
    minutes: float,
    load: float,
    seed: int,
    log: Path | None = None,
    cores_per_node: int | None = None,
) -> TwinPlan:
    """The jobs of a log or of a synthetic month, with times scaled to `minutes` at a load, and with random
    users, QOS and other options.

    Raises InputError if the log has fewer jobs.
    """
    seconds = minutes * 60
    people = _People(random.Random(seed), nodes)
    rows = _squeezed(nodes, jobs, seconds, load, log, cores_per_node)
    made = [people.job(number, *row) for number, row in enumerate(rows)]
    reservations = _reservations(nodes, minutes)
    made += _course(len(made), nodes, reservations[-1])
    made.sort(key=lambda job: (job.submit, job.number))
    parts = {"half": nodes // 2, "third": nodes // 3, "most": nodes * 3 // 4}
    qos = {name: limits.format(**parts) for name, limits in QOS.items()}
    site = Site(people.partitions.settings(), SETTINGS, qos)
    return TwinPlan(nodes, seconds, made, reservations, _events(nodes, seconds), site, people.partitions)


class _People:
    """Draws the submitter of a job and its further options."""

    def __init__(self, draw: random.Random, nodes: int) -> None:
        self.partitions = Partitions.of(nodes)
        self._draw, self._nodes = draw, nodes
        self._all = [(account, user) for account, (_, users) in ACCOUNTS.items() for user in users]
        self._weights = [1 / (1 + place) for place in range(len(self._all))]
        self._now: tuple[str, str] | None = None
        self._earlier: dict[str, list[int]] = {}

    def job(self, number: int, submit: float, width: int, run: float, walltime: float) -> Job:
        draw = self._draw
        if self._now is None or draw.random() < 0.25:  # a user submits about four jobs in a row
            self._now = draw.choices(self._all, self._weights)[0]
        account, user = self._now
        limit = math.ceil(max(walltime, run + 10) / 60)
        qos, partition = self._where(limit, width)
        earlier = self._earlier.setdefault(user, [])
        after = None
        if earlier and draw.random() < 0.07:
            after = (draw.choice(("afterok", "afterany")), draw.choice(earlier[-8:]))
        earlier.append(number)
        begin = draw.randint(20, 90) if draw.random() < 0.02 else 0
        nice = draw.choice((100, 1000)) if draw.random() < 0.03 else 0
        return Job(number, submit, width, run, limit, account, user, qos, partition, after, begin, nice)

    def _where(self, limit: int, width: int) -> tuple[str, str]:
        """A random QOS and partition."""
        draw, partitions = self._draw, self.partitions
        if limit <= partitions.debug_minutes and width <= partitions.debug_nodes and draw.random() < 0.25:
            return "normal", "pdebug"
        if limit <= 2 and draw.random() < 0.4:
            return "short", "pbatch"
        if width >= WIDEST * self._nodes / 2 and draw.random() < 0.6:
            return "large", "pbatch"
        return "normal", "pbatch"


def _reservations(nodes: int, minutes: float) -> list[Reservation]:
    """Reservations for maintenance of some nodes, and for one user's course."""
    length = max(round(minutes / 12), 1)
    return [
        Reservation("maintenance", round(15 * minutes), length, (1, nodes // 9), "Users=root Flags=MAINT"),
        Reservation("course", round(30 * minutes), length, (9, 8 + nodes // 8), f"Users={STUDENT[1]}"),
    ]


def _course(first: int, nodes: int, course: Reservation) -> list[Job]:
    """Jobs in the course's reservation, submitted from a minute before its start on."""
    account, user = STUDENT
    return [
        Job(
            number=first + turn,
            submit=max(course.start - 60 + 10 * turn, 1),
            nodes=max(nodes // 16, 1),
            run=20 + 5 * turn,
            minutes=1,
            account=account,
            user=user,
            qos="normal",
            partition="pbatch",
            reservation=course.name,
        )
        for turn in range(4)
    ]


def _squeezed(
    nodes: int, jobs: int, seconds: float, load: float, log: Path | None, cores_per_node: int | None
) -> list[tuple[float, int, float, float]]:
    """Submission, nodes, run time and walltime of each job, with the times scaled."""
    whole = 10**9  # accept jobs of any width, because widths are scaled here
    columns = workload.workload_of(log, cores_per_node, whole, jobs, None).columns()
    taken = [columns[name].tolist() for name in ("submit", "nodes", "run", "walltime")]
    if len(taken[0]) < jobs:
        raise InputError(f"{log}: {len(taken[0]):,} jobs, where --jobs wants {jobs:,}")
    submit, width, run, walltime = taken
    narrower = max(max(width) / (SCALED_TO * nodes), 1)
    widths = [max(1, min(round(each / narrower), math.floor(WIDEST * nodes))) for each in width]
    span = SUBMITTED * seconds
    first, length = submit[0], (submit[-1] - submit[0]) or 1
    longest = LONGEST * seconds
    wanted = load * nodes * span
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        work = sum(n * min(r * middle, longest) for n, r in zip(widths, run))
        low, high = (middle, high) if work < wanted else (low, middle)
    rows = []
    for when, n, r, wall in zip(submit, widths, run, walltime):
        short = round(max(min(r * high, longest), 2.0), 1)
        limit = wall * high if math.isfinite(wall) and wall > 0 else 2 * short
        rows.append(((when - first) / length * span, n, short, max(min(limit, 2 * longest), short)))
    return rows


def _events(nodes: int, seconds: float) -> list[Event]:
    """Three node failures, and one drain."""
    out = [
        (0.35, 0.42, "down", (nodes // 3, nodes // 3 + nodes // 24)),
        (0.60, 0.68, "drain", (nodes // 2, nodes // 2 + nodes // 12)),
        (0.70, 0.76, "down", (nodes * 3 // 4 + 1, nodes * 3 // 4 + 2)),
    ]
    events = []
    for begin, end, state, which in out:
        events += [Event(begin * seconds, state, which), Event(end * seconds, "resume", which)]
    return events
