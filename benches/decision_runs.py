"""The runs whose decisions are hashed, with their numbers of jobs."""

from __future__ import annotations

import csv
import dataclasses
import functools
import io
import itertools
import math
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import decision_sequences as sequences
from decision_names import DRAGONFLY, NETWORKS, NO_TREE, POLICIES, RECORDED, SITE_POLICIES, SPEED_UP
from topolane import Machine, Settings, Shape, Workload, _engine, sources

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LIMITED = ("fcfs", "easy", "conservative", "slurm", "easy-strict", "easy-pinned")
"""The queues that limits refer to, in their order."""
QUEUES = (*LIMITED, *(name for name, _ in _engine.queues() if name not in (*LIMITED, RECORDED)))
"""All queues. Those that are not in LIMITED have the last limit of each row with a limit for all of LIMITED."""
MACHINES = {
    "small": "fat-tree(radix=8)",
    "theta": "fat-tree(radix=28, pods=23)",
    "slingshot": "slingshot(nodes=128, groups=4, switches=8, cables=3)",
    "aries": "theta",
}
"""Short names for machines with long ones."""
UNEVEN = """
name = "uneven"
[[node-kind]]
nodes = "a[1-8]"
memory = 137438953472
[[site]]
name = "east"
children = [4, 3, 4]
parents = [1, 2, 2]
cables = [1, 2, 1]
nodes = "a[1-48]"
missing = [[1, 0, 0, 1, 0], [1, 0, 0, 1, 1], [2, 1, 0, 1, 0]]
[[site]]
name = "west"
children = [6, 2]
nodes = "b[1-12]"
[[site]]
name = "north"
children = [4, 4]
parents = [1, 2]
nodes = "c[1-16]"
[[wan]]
between = ["east", "west"]
latency = 0.005
bandwidth = 1.25e8
[[wan]]
between = ["west", "north"]
latency = 0.02
bandwidth = 1.25e9
"""
"""Three sites with different trees, joined in a row, with missing cables and two kinds of nodes."""


@dataclasses.dataclass(frozen=True)
class Source:
    """The source of a run's jobs, and its machine."""

    name: str
    """The name of a synthetic month, or the file of a log."""
    machine: str = "cab"
    shape: Shape = dataclasses.field(default_factory=Shape)
    rewritten: str = ""
    """`recorded`: with the nodes from a run of slurm-tree; `shared`: jobs take cores and memory of nodes."""

    @property
    def log(self) -> bool:
        """Whether the jobs come from a log, whose file may be missing."""
        return ".swf" in self.name


ATLAS = "LLNL-Atlas-2006-2.1-cln.swf.gz"
SOURCES = {
    **{name: Source(name) for name in ("cab-aug", "cab-sep", "cab-nov", "cab-aug-3x", "exp-16")},
    **{f"{name}-small": Source(name, "small") for name in ("cab-aug", "cab-sep", "cab-nov", "exp-16")},
    "exp-4-uneven": Source("exp-4", "uneven"),
    "exp-16-slingshot": Source("exp-16", "slingshot"),
    "theta-aries": Source("theta-2023.swf.gz", "aries"),
    "exp-4-recorded": Source("exp-4", "small", rewritten="recorded"),
    "cab-aug-recorded": Source("cab-aug", rewritten="recorded"),
    "exp-4-shared": Source("exp-4", "small", rewritten="shared"),
    "cab-sep-shared": Source("cab-sep", rewritten="shared"),
    "atlas": Source(ATLAS, shape=Shape(cores_per_node=8)),
    "atlas-squeezed": Source(ATLAS, shape=Shape(cores_per_node=8, squeeze=0.6)),
    "kth": Source("KTH-SP2-1996.swf.gz", "small"),
    "theta": Source("theta-2023.swf.gz", "theta"),
}
Limits = tuple[int | None, ...]
"""The number of jobs under each queue of LIMITED; None for no run."""
QUICK: list[tuple[str, str, Limits]] = [
    *itertools.product(["cab-aug-small", "cab-sep-small", "cab-nov-small"], ["none"], [(300, 300, 100)]),
    ("exp-16-small", "none", (150, 150, 60, 60, 150, 150)),
    ("exp-16-small", "congestion", (None, 150, 60)),
    ("exp-4-uneven", "none", (None, 200, None)),
    ("exp-4-shared", "none", (None, 200, 60)),
    ("cab-aug-3x", "none", (None, 150, None)),
]
FULL: list[tuple[str, str, Limits]] = [
    *itertools.product(["cab-aug", "cab-nov"], ["none", "congestion"], [(2000, 2000, 1000)]),
    *itertools.product(["cab-sep"], ["none", "congestion"], [(1000, 1000, 150)]),
    *itertools.product(["cab-aug-3x", "exp-16"], ["none", "congestion"], [(500, 500, 100)]),
    *itertools.product(["cab-aug", "cab-aug-3x"], ["max-min", "flows"], [(None, 300, None)]),
    ("exp-16-small", "full", (None, 30, None)),
    ("exp-4-uneven", "congestion", (300, 300, 60)),
    ("cab-sep-shared", "none", (500, 500, 100)),
    ("cab-aug", "none", (None, 20_000, None)),
    ("cab-nov", "none", (None, 18_679, None)),
    ("cab-sep", "none", (None, 3_000, None)),
    *itertools.product(["atlas", "atlas-squeezed"], ["none", "congestion"], [(3000, 3000, 300)]),
    *itertools.product(["kth"], ["none", "congestion"], [(3000, 3000, 300)]),
    *itertools.product(["theta"], ["none", "congestion"], [(500, 500, 100)]),
]
"""(source, network, limits); every row is run under every policy. The quick runs are part of the full set."""


@functools.cache
def machine(name: str) -> Machine:
    """The machine with this name."""
    if name == "uneven":
        return Machine.parse(UNEVEN, "uneven.toml", "toml")
    return sources.machine(MACHINES.get(name, name))


@functools.cache
def workload(source: Source, limit: int, seed: int, logs: Path) -> Workload:
    """The first jobs of a source, without jobs wider than the machine."""
    where = logs / source.name if source.log else source.name
    # A limit counts only jobs that fit the machine; here, all do.
    changes = ("days", "nodes_x", "squeeze", "load", "jitter")
    shape = dataclasses.replace(source.shape, limit=limit, **dict.fromkeys(changes))
    jobs = sources.workload(where, 2**32 - 1, seed=seed, shape=shape)
    changed = {name: getattr(source.shape, name) for name in changes}
    jobs = jobs.shaped(machine(source.machine).nodes, seed=seed, **changed)
    return rewritten(jobs, source, seed) if source.rewritten else jobs


def rewritten(jobs: Workload, source: Source, seed: int) -> Workload:
    """The jobs with further columns, rewritten through a CSV file."""
    fabric, own = machine(source.machine), jobs.columns()
    columns = {key: own[key].tolist() for key in ("id", "submit", "run", "walltime", "nodes")}
    if source.rewritten == "recorded":
        run = _engine.simulate(jobs, fabric, Settings(policy="slurm-tree", queue="easy", seed=seed))
        rows = csv.DictReader(io.StringIO(run.tables()["jobs"].csv().decode()))
        facts = zip(rows, run.placements(), strict=True)
        held = {int(row["job_id"]): (row["starting_time"], nodes.tolist()) for row, nodes in facts}
        columns["start"] = [held[job][0] for job in columns["id"]]
        columns["hosts"] = [fabric.hostlist(held[job][1]) for job in columns["id"]]
    else:
        columns["cores"] = [1 + 7 * job % 16 for job in columns["id"]]
        columns["memory"] = [5 * job % 8 << 30 for job in columns["id"]]
    columns["walltime"] = ["" if math.isnan(time) else time for time in columns["walltime"]]
    with tempfile.NamedTemporaryFile("w", suffix=".csv", newline="") as file:
        table = csv.writer(file)
        table.writerow(columns)
        table.writerows(zip(*columns.values(), strict=True))
        file.flush()
        return Workload.read(file.name)


def run(
    source: Source, queue: str, policy: str, network: str, limit: int, seed: int, logs: Path
) -> Iterator[str]:
    """Number, start, end and nodes in rank order of every job of a run, in order of start.

    `topolane.simulate` gives the nodes of a job as a set, so the engine is asked for their order. The table
    has microseconds; a last line has the exact bits of the mean of all times from submission to end.
    """
    fabric, meet = machine(source.machine), NETWORKS[network]
    name, options = (RECORDED, {}) if policy == RECORDED else POLICIES[policy]
    settings = Settings(policy=name, queue=queue, seed=seed, network=meet, **options)
    outcome = _engine.simulate(workload(source, limit, seed, logs), fabric, settings)
    rows = csv.DictReader(io.StringIO(outcome.tables()["jobs"].csv().decode()))
    for row, nodes in zip(rows, outcome.placements(), strict=True):
        start, end = float(row["starting_time"]), float(row["finish_time"])
        yield f"{row['job_id']} {start.hex()} {end.hex()} {nodes.tolist()}"
    yield outcome.summary()["mean_turnaround"].hex()


ON_DRAGONFLIES: list[tuple[bool, str, Limits]] = [
    (True, "exp-16-slingshot", (150, 150, 60, 60, 150, 150)),
    (False, "theta-aries", (200, 500, 50)),
]
"""(whether quick, source, limits), run without a network."""
REPLAYED: list[tuple[bool, str, str, int]] = [
    (True, "exp-4-recorded", "none", 200),
    (False, "cab-aug-recorded", "none", 2000),
    (False, "cab-aug-recorded", "congestion", 1000),
    (False, "kth", "none", 1000),
    (False, "atlas", "none", 1000),
]
"""(whether quick, source, network, jobs) for runs that start jobs when the log does."""
WIRED_STATES = [(True, "slingshot", 200), (False, "aries", 60)]
STATES = [(True, "small", 200), (True, "uneven", 200), (False, "cab", 250), (False, "sc18-network", 40)]
SCHEDULERS = [(True, "small", 200), (False, "uneven", 400), (False, "cab", 400)]
"""(whether quick, machine, steps)"""
MAPS = [(True, "small", "fast"), (True, "small", "eco"), (False, "small", "strong"), (False, "cab", "eco")]
PATTERNS = ("stencil4d", "unstructured3d", "pairs", "suba2a")
Runs = dict[str, tuple[str | None, "Callable[[], Iterator[str]]"]]
"""By key: the log that the run needs, and the function that yields its decisions."""


def simulations(quick: bool, seed: int, logs: Path) -> Runs:
    """The runs of workloads."""
    on_trees = [policy for policy in POLICIES if policy not in NO_TREE]
    rows = [(*row, QUEUES, on_trees) for row in (QUICK if quick else QUICK + FULL)]
    for early, name, limits in ON_DRAGONFLIES:
        if early or not quick:
            rows.append((name, "none", limits, QUEUES, list(DRAGONFLY)))
    for early, name, network, limit in REPLAYED:
        if early or not quick:
            own = [] if SOURCES[name].log else [RECORDED]
            rows.append((name, network, (limit,), (RECORDED,), own + on_trees))
    found: Runs = {}
    for name, network, limits, queues, policies in rows:
        if len(limits) == len(LIMITED):
            limits += limits[-1:] * (len(QUEUES) - len(LIMITED))
        for (queue, limit), policy in itertools.product(zip(queues, limits), policies):
            assumes_speed = policy != RECORDED and SPEED_UP in POLICIES[policy][1]
            if limit is None or (assumes_speed and network != "none"):
                continue
            source = SOURCES[name]
            call = functools.partial(run, source, queue, policy, network, limit, seed, logs)
            found[f"{name}/{queue}/{policy}/{network}/{limit}"] = (source.name if source.log else None, call)
    return found


def single_decisions(quick: bool, seed: int) -> Runs:
    """The sequences of single decisions."""
    found: Runs = {}

    def add(early: bool, key: str, function: Callable[..., Iterator[str]], *rest: Any) -> None:
        if early or not quick:
            _, where, *_ = key.split("/")
            found[key] = (None, lambda: function(machine(where), *rest))

    policies = {key: name for key, (name, options) in POLICIES.items() if not options}
    for key, (early, where, steps) in itertools.product(DRAGONFLY, WIRED_STATES):
        for kind in ("whole", "shared"):
            path = f"state/{where}/{key}/{kind}/{steps}"
            add(early, path, sequences.placed, policies[key], kind, seed, steps)
    for key, name in policies.items():
        if key in NO_TREE:
            continue
        for (early, where, steps), kind in itertools.product(STATES, sequences.REQUESTS):
            add(early, f"state/{where}/{key}/{kind}/{steps}", sequences.placed, name, kind, seed, steps)
        for (early, where, steps), queue in itertools.product(SCHEDULERS, QUEUES):
            path = f"scheduler/{where}/{key}/{queue}/{steps}"
            add(early, path, sequences.scheduled, name, queue, seed, steps)
    for (early, where, effort), pattern in itertools.product(MAPS, PATTERNS):
        add(early, f"map/{where}/{pattern}/{effort}", sequences.mapped, pattern, effort, seed)
    for key, name in SITE_POLICIES.items():
        add(True, f"sites/uneven/{key}", sequences.chosen, name, seed)
    return found


def matrix(quick: bool = False, seed: int = 1, logs: Path = Path()) -> Runs:
    """All runs by key."""
    return simulations(quick, seed, logs) | single_decisions(quick, seed)
