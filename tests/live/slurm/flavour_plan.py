"""Plans of clusters with different rules: random jobs, users and settings by flavour and seed."""

from __future__ import annotations

import dataclasses
import math
import random
from collections.abc import Callable

from twin_plan import ACCOUNTS, STUDENT, Event, Job, Plan, Reservation, Site

NODES = 24
LEAF, POD = 4, 3
CORES = 16
FLAVOURS: dict[str, Callable[[random.Random], Site]] = {}
"""The settings of each flavour."""
NAMES = {
    "basic": "priority/basic",
    "fair-whole": "fair share, whole nodes",
    "fair-shared": "fair share, shared nodes",
    "qos-preemption": "QOS preemption, reservations",
    "partitions": "partitions of several tiers",
    "gpus": "GPUs with gres",
}
"""The flavours, and what tables call them."""
SHARING = ("fair-shared", "gpus")
"""Flavours whose jobs share nodes."""
WHOLE, SHARED = "OverSubscribe=EXCLUSIVE", "OverSubscribe=NO"
NORMAL = {"normal": "Priority=10"}


def _schedulers(draw: random.Random) -> str:
    """Parameters of the schedulers such as sites set them."""
    words = [f"bf_interval={draw.choice((5, 10, 15, 30))}", "bf_continue"]
    words += draw.choice(([], [f"bf_resolution={draw.choice((10, 30))}"]))
    words += draw.choice(([], [f"default_queue_depth={draw.choice((20, 50))}"]))
    words += draw.choice(([], [], [f"bf_max_job_user={draw.choice((3, 6))}"]))
    return ",".join(words)


def _settings(draw: random.Random, **more: object) -> dict[str, object]:
    return {
        "AccountingStorageEnforce": "associations,limits,qos",
        "ReturnToService": 1,  # a node that the plan takes down stays down until the plan says otherwise
        "SchedulerParameters": _schedulers(draw),
        **more,
    }


def _fair(draw: random.Random, **more: object) -> dict[str, object]:
    """Settings of a multifactor priority, in which fair share weighs most."""
    return _settings(
        draw,
        PriorityType="priority/multifactor",
        PriorityDecayHalfLife=f"0-00:{draw.choice((5, 20))}:00",
        PriorityCalcPeriod="00:01:00",
        PriorityMaxAge=f"0-00:{draw.choice((10, 30))}:00",
        PriorityWeightAge=draw.choice((500, 2000)),
        PriorityWeightFairShare=draw.choice((5000, 20000)),
        PriorityWeightJobSize=draw.choice((0, 500, 2000)),
        PriorityWeightPartition=draw.choice((0, 2000)),
        PriorityWeightQOS=draw.choice((1000, 5000)),
        **more,
    )


def _site(settings: dict[str, object], partitions: dict[str, str], **more: object) -> Site:
    qos = more.pop("qos", NORMAL)
    options = more.pop("options", ())
    assert isinstance(qos, dict) and isinstance(options, tuple) and not more
    shape = ("--leaf", str(LEAF), "--pod", str(POD), "--cpus", str(CORES))
    return Site(partitions, settings, qos, (*shape, *options))


def _flavour(name: str) -> Callable[[Callable[[random.Random], Site]], Callable[[random.Random], Site]]:
    def keep(made: Callable[[random.Random], Site]) -> Callable[[random.Random], Site]:
        FLAVOURS[name] = made
        return made

    return keep


@_flavour("basic")
def _basic(draw: random.Random) -> Site:
    return _site(_settings(draw, PriorityType="priority/basic"), {"pbatch": f"Nodes=ALL Default=YES {WHOLE}"})


@_flavour("fair-whole")
def _fair_whole(draw: random.Random) -> Site:
    return _site(_fair(draw), {"pbatch": f"Nodes=ALL Default=YES {WHOLE}"})


@_flavour("fair-shared")
def _fair_shared(draw: random.Random) -> Site:
    return _site(_fair(draw), {"pbatch": f"Nodes=ALL Default=YES {SHARED}"})


@_flavour("qos-preemption")
def _qos_preemption(draw: random.Random) -> Site:
    preempt: dict[str, object] = {"PreemptType": "preempt/qos", "PreemptMode": "REQUEUE"}
    if draw.random() < 0.3:
        preempt["PreemptExemptTime"] = "00:00:30"
    return _site(
        _fair(draw, **preempt),
        {"pbatch": f"Nodes=ALL Default=YES {WHOLE}"},
        qos={
            "low": "Priority=0",
            "normal": "Priority=50 Preempt=low",
            "high": "Priority=100 Preempt=low" + draw.choice(("", ",normal")) + " GrpTRES=node=16",
        },
    )


@_flavour("partitions")
def _partitions(draw: random.Random) -> Site:
    last = draw.choice((4, 8))
    return _site(
        _fair(draw),
        {
            "pbatch": f"Nodes={{prefix}}[1-20] Default=YES PriorityTier=5 PriorityJobFactor=5 {WHOLE}",
            "pdebug": f"Nodes={{prefix}}[{25 - last}-24] PriorityTier=10 PriorityJobFactor=10 MaxTime=2 {WHOLE}",
            "plow": f"Nodes=ALL PriorityTier=1 PriorityJobFactor=1 {WHOLE}",
            "pwide": f"Nodes={{prefix}}[9-24] PriorityTier=5 PriorityJobFactor=8 {WHOLE}",
        },
    )


@_flavour("gpus")
def _gpus(draw: random.Random) -> Site:
    return _site(
        _fair(draw, AccountingStorageTRES="gres/gpu,gres/gpu:a,gres/gpu:b"),
        {"pbatch": f"Nodes=ALL Default=YES {SHARED}"},
        # Each slurmd looks for GPUs when it starts.
        options=("--conf", "GresTypes=gpu", "--group", "12 Gres=gpu:a:4", "--group", "8 Gres=gpu:b:2"),
    )


def plan(flavour: str, seed: int) -> Plan:
    """110 to 150 random jobs under a flavour's rules. The same seed gives the same plan."""
    draw = random.Random(f"{flavour} {seed}")
    site = FLAVOURS[flavour](draw)
    count = draw.randint(110, 150)
    jobs = _Jobs(draw, flavour, site)
    made = [jobs.job(number) for number in range(count)]
    span = sum(jobs.nodes_of(job) * job.run for job in made) / (NODES * draw.uniform(1.0, 1.35))
    times = sorted(draw.uniform(1, span) for _ in range(count // 3))
    # Users submit several jobs in a row.
    submits = sorted(
        min(draw.choice(times) + draw.choice((0, draw.uniform(0, 3), draw.uniform(0, 20))), span)
        for _ in made
    )
    made = [dataclasses.replace(job, submit=round(submit, 1)) for job, submit in zip(made, submits)]
    made = [
        dataclasses.replace(job, cancelled=job.submit + draw.uniform(10, 120))
        if draw.random() < 0.03
        else job
        for job in made
    ]
    reservations = _reservations(draw, span) if flavour == "qos-preemption" else []
    for each in reservations[:1]:
        made = [*made, *_course(len(made), draw, each)]
        made.sort(key=lambda job: (job.submit, job.number))
    return Plan(NODES, span * 1.6 + 240, made, reservations, _events(draw, span), site)


class _Jobs:
    """Draws jobs and their users."""

    def __init__(self, draw: random.Random, flavour: str, site: Site) -> None:
        self._draw, self._flavour, self._site = draw, flavour, site
        self._people = [(account, user) for account, (_, users) in ACCOUNTS.items() for user in users]
        self._weights = [1 / (1 + place) for place in range(len(self._people))]
        self._now = self._people[0]
        self._earlier: dict[str, list[int]] = {}

    def job(self, number: int) -> Job:
        """A job without its time of submission."""
        draw = self._draw
        if number == 0 or draw.random() < 0.35:
            self._now = draw.choices(self._people, self._weights)[0]
        account, user = self._now
        longer = 2.5 if self._flavour in SHARING else 1  # such jobs are small
        run = round(longer * min(max(draw.lognormvariate(3.5, 0.6), 6), 150), 1)
        minutes = math.ceil((run + 5) * draw.choice((1, 1.5, 3)) / 60)
        partition, qos = "pbatch", "normal"
        if self._flavour == "partitions":
            partition = draw.choices(("pbatch", "pdebug", "plow", "pwide"), (4, 2, 4, 2))[0]
        if self._flavour == "qos-preemption":
            qos = draw.choices(("low", "normal", "high"), (5, 4, 2))[0]
        nodes, options = self._width(partition)
        if partition == "pdebug":
            nodes, run, minutes = min(nodes, 4), min(run, 55), min(minutes, 2)
        earlier = self._earlier.setdefault(user, [])
        after = None
        if earlier and draw.random() < 0.06:
            after = (draw.choice(("afterok", "afterany")), draw.choice(earlier[-6:]))
        earlier.append(number)
        if draw.random() < 0.03:
            options = (*options, f"--array=1-{draw.randint(2, 4)}")
        begin = draw.randint(20, 90) if draw.random() < 0.03 else 0
        nice = draw.choice((50, 100, 1000)) if draw.random() < 0.03 else 0
        return Job(
            number, 0, nodes, run, minutes, account, user, qos, partition, after, begin, nice, options=options
        )

    def _width(self, partition: str) -> tuple[int, tuple[str, ...]]:
        """Nodes and further options of a job."""
        draw = self._draw
        if self._flavour == "fair-shared":
            nodes = draw.choices((1, 2, 3, draw.randint(4, 8)), (50, 20, 15, 15))[0]
            return nodes, (f"--ntasks-per-node={draw.choice((1, 2, 4, 6, 8, 8, 12, 16, 16))}",)
        if self._flavour == "gpus":
            if draw.random() < 0.25:
                return draw.choice((1, 1, 2)), (f"--ntasks-per-node={draw.choice((2, 4, 8, 16))}",)
            nodes, gpus = (
                draw.choices((1, 2, draw.randint(3, 6)), (50, 30, 20))[0],
                draw.choice((1, 1, 2, 2, 4)),
            )
            kind = "" if gpus == 4 or draw.random() < 0.6 else draw.choice(("a:", "b:"))
            return nodes, (f"--gres=gpu:{kind}{gpus}", f"--ntasks-per-node={draw.choice((1, 2, 4)) * gpus}")
        most = 16 if partition == "pwide" else 14
        wide = (1, 2, draw.randint(3, 4), draw.randint(5, 8), draw.randint(9, most))
        return draw.choices(wide, (35, 20, 20, 17, 8))[0], ()

    def nodes_of(self, job: Job) -> float:
        """The nodes that a job and its tasks hold, with parts."""
        words = dict(word.partition("=")[::2] for word in job.options)
        cores = int(words.get("--ntasks-per-node", CORES))
        part = cores / CORES
        if "--gres" in words:
            part = max(part, int(words["--gres"].rpartition(":")[2]) / 3.2)
        return job.nodes * part * int(words.get("--array", "1-1").rpartition("-")[2])


def _reservations(draw: random.Random, span: float) -> list[Reservation]:
    """A course's nodes, and nodes that no user may use for a while."""
    first = draw.randint(1, 12)
    course = Reservation("course", int(span * 0.3), 3, (first, first + 3), f"users={STUDENT[1]}")
    first = draw.randint(17, 21)
    return [course, Reservation("service", int(span * 0.6), 2, (first, first + 3), "users=root")]


def _course(first: int, draw: random.Random, course: Reservation) -> list[Job]:
    account, user = STUDENT
    return [
        Job(
            number=first + turn,
            submit=course.start - 40 + 12.0 * turn,
            nodes=draw.choice((1, 2)),
            run=20 + 5 * turn,
            minutes=1,
            account=account,
            user=user,
            qos="normal",
            partition="pbatch",
            reservation=course.name,
        )
        for turn in range(6)
    ]


def _events(draw: random.Random, span: float) -> list[Event]:
    """A drain of some nodes, and on some plans a node that goes down."""
    first = draw.randint(1, NODES - 3)
    events = [
        Event(0.3 * span, "drain", (first, first + 1)),
        Event(0.55 * span, "resume", (first, first + 1)),
    ]
    if draw.random() < 0.5:
        node = draw.randint(1, NODES)
        events += [Event(0.7 * span, "down", (node, node)), Event(0.8 * span, "resume", (node, node))]
    return events


def machine(flavour: str, prefix: str) -> str:
    """The machine file of a flavour's cluster."""
    kinds = ""
    if flavour == "gpus":
        for first, last, kind, count in ((1, 12, "a", 4), (13, 20, "b", 2)):
            kinds += f'[[node-kind]]\nnodes = "{prefix}[{first}-{last}]"\nresources = {{ gpu = {count}, "gpu:{kind}" = {count} }}\n'
    children = [LEAF, POD, NODES // LEAF // POD]
    return (
        f'name = "{prefix}"\n[node]\nsockets = 2\ncores-per-socket = {CORES // 2}\n{kinds}[[site]]\nname = "core"\n'
        f'children = {children}\nnodes = "{prefix}[1-{NODES}]"\n'
    )
