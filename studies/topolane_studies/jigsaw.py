"""Rules that give jobs links of their own, measured as Jigsaw (HPDC'21) was: what isolation costs a full machine.

No code and no full text of Jigsaw are at hand: docs/explanation/jigsaw-paper.md says
what of it is published and what is rebuilt.
"""

from __future__ import annotations

import dataclasses
from collections import ChainMap
from typing import TYPE_CHECKING, Any, Literal

from topolane._engine import InputError
from topolane.run import Defrag, Network
from topolane.sources import Shape
from topolane.sweep import Task, over
from topolane.sweep import seeds as over_seeds

from topolane_studies.judging import direction, figure, missing, within_points

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from topolane.sweep.kept import Kept

    from topolane_studies import PaperRow

JITTER = 0.02
"""Run times are cut by up to this part, another draw for every seed and the same for every rule."""
COMMUNICATION = 0.3
"""The part of its time alone that a job communicates, where jobs slow each other down."""
TRACE_LOADS = (0.9, 1.0, 1.1)
TRACE_JOBS = 8_000
TRACE_CORES = 8
"""Cores of a node of LLNL's Atlas, whose log counts processors."""


@dataclasses.dataclass(frozen=True)
class Trace:
    """A log that is run at three loads, by default as LLNL's Atlas."""

    path: str
    machine: str = "cab"
    limit: int | None = TRACE_JOBS
    cores_per_node: int | None = TRACE_CORES
    gpus_per_node: int | None = None


Kind = Literal["synthetic", "trace"]


@dataclasses.dataclass(frozen=True)
class JigsawRule:
    """A row of the tables: a policy, and what else of a task differs from that of first fit."""

    label: str
    policy: str
    options: tuple[tuple[str, Any], ...] = ()

    def on(self, task: Task) -> Task:
        """The task under this rule."""
        return dataclasses.replace(task, policy=self.policy, **dict(self.options))


FIRST_FIT = JigsawRule("first-fit", "first-fit")
JIGSAW = JigsawRule("jigsaw", "jigsaw")
GAIN = "5"
"""The modest gain from isolation of jobs of more than four nodes, per cent: the least that SC'18 assumed."""
GAINING = JigsawRule("jigsaw, jobs gain", JIGSAW.policy, (("scenario", GAIN),))
"""Run for the paper's claims only, so no row of the tables."""
STRICT, MOVES, HALF = "dedicated", "dedicated, moves", "dedicated, min-bandwidth .5"
HALF_MOVES = "dedicated, min-bandwidth .5, moves"
RULES = (
    FIRST_FIT,
    JigsawRule("isolated", "isolated"),
    JigsawRule("quiet-neighborhoods", "quiet-neighborhoods"),
    JigsawRule("laas", "laas"),
    JIGSAW,
    JigsawRule("jigsaw-relaxed", "jigsaw-relaxed"),
    JigsawRule(STRICT, "dedicated"),
    JigsawRule(MOVES, "dedicated", (("defrag", Defrag()),)),
    JigsawRule(HALF, "dedicated", (("min_bandwidth", 0.5),)),
    JigsawRule(HALF_MOVES, "dedicated", (("min_bandwidth", 0.5), ("defrag", Defrag()))),
)


@dataclasses.dataclass(frozen=True)
class JigsawLoad:
    """Jobs on a machine."""

    name: str
    kind: Kind
    machine: str
    workload: str
    shape: Shape = dataclasses.field(default_factory=lambda: Shape(jitter=JITTER))

    def task(self, seed: int) -> Task:
        """Its run under first fit."""
        return Task(self.machine, self.workload, policy=FIRST_FIT.policy, seed=seed, shape=self.shape)


SYNTHETIC = (
    JigsawLoad("cab-sep", "synthetic", "cab", "cab-sep"),
    *(
        JigsawLoad(f"exp-{radix}", "synthetic", f"fat-tree(radix={radix})", f"exp-{radix}")
        for radix in (16, 22, 28)
    ),
)


def loads(trace: Trace | None = None, only: str | None = None) -> list[JigsawLoad]:
    """The synthetic loads, and a log at three loads if one is given.

    only: some of them, by their names and comma.

    Raises InputError for a name that none of them has.
    """
    every = [*SYNTHETIC, *traces(trace)]
    if only is None:
        return every
    names = [name.strip() for name in only.split(",")]
    for name in names:
        if all(load.name != name for load in every):
            known = ", ".join(load.name for load in every)
            raise InputError(f"no load is called {name!r}; there are {known}")
    return [load for load in every if load.name in names]


def traces(trace: Trace | None) -> list[JigsawLoad]:
    """A log at three loads; nothing if there is none."""
    if trace is None:
        return []
    shape = Shape(
        cores_per_node=trace.cores_per_node,
        gpus_per_node=trace.gpus_per_node,
        limit=trace.limit,
        jitter=JITTER,
    )
    return [
        JigsawLoad(
            f"trace {load:.1f}", "trace", trace.machine, trace.path, dataclasses.replace(shape, load=load)
        )
        for load in TRACE_LOADS
    ]


KEYS = (
    "utilization_while_waiting",
    "mean_wait",
    "mean_wait_by_work",
    "makespan",
    "mean_turnaround",
    "mean_bandwidth_share",
)
Measures = dict[str, float]


def measure(task: Task) -> Measures:
    """A run in the figures of the tables, small enough to send home. Times in seconds.

    Raises InputError where jobs are left waiting for ever: their waits would be missing.
    """
    summary = task.run().summary
    waiting = sum(
        jobs for why, jobs in summary["left_out"].items() if why.startswith(("still", "refused by"))
    )
    if waiting:
        raise InputError(f"{task.policy} never starts {waiting} jobs of {task.workload} on {task.machine}")
    found = {key: float(summary[key]) for key in KEYS}
    found["moves_per_job"] = summary["moves"] / (summary["jobs"] or 1)
    found["head_blocked"] = summary["fragmentation"]["seconds"] / (summary["makespan"] or 1.0)
    return found


Runs = dict[tuple[str, str], list[Measures]]
"""By load and rule, the measures of every seed."""


@dataclasses.dataclass(frozen=True)
class JigsawResults:
    """All runs."""

    loads: list[JigsawLoad]
    rules: list[JigsawRule]
    alone: Runs
    """Without a network: no job slows another down, and none gains."""
    coupled: Runs
    """Where jobs slow each other down on links that they share, and by themselves on few links."""
    break_even: dict[tuple[str, str], float]
    """The cut in run time that makes up for the rule, per cent."""

    def ratios(self, load: str, rule: str, key: str, *, coupled: bool = False) -> list[float]:
        """A measure of every seed over that of first fit for the same seed; none where nothing was run."""
        runs = self.coupled if coupled else self.alone
        pairs = zip(runs.get((load, rule), ()), runs.get((load, FIRST_FIT.label), ()))
        return [own[key] / (first[key] or 1.0) for own, first in pairs]


def plan(
    chosen: Sequence[JigsawLoad],
    rules: Iterable[JigsawRule],
    seeds: Sequence[int],
    network: Network | None = None,
) -> list[tuple[tuple[str, str], Task]]:
    """Every run, by load and rule."""
    return [
        ((load.name, rule.label), dataclasses.replace(rule.on(load.task(seed)), network=network))
        for load in chosen
        for rule in rules
        for seed in seeds
    ]


def runs_of(
    planned: Sequence[tuple[tuple[str, str], Task]], run: Callable[[Sequence[Task]], list[Measures]]
) -> Runs:
    """Runs all and sorts them by load and rule."""
    found: Runs = {}
    for (key, _), measured in zip(planned, run([task for _, task in planned])):
        found.setdefault(key, []).append(measured)
    return found


def study(
    chosen: Sequence[JigsawLoad],
    seeds: Sequence[int],
    *,
    contention: int | None = None,
    rules: Sequence[JigsawRule] | None = None,
    break_even: bool = True,
    executor: str | None = None,
    workers: int | None = None,
    done: Callable[..., None] | None = None,
    kept: Kept | None = None,
) -> JigsawResults:
    """Runs all loads under all rules, alone and coupled, and looks for every rule's break-even unless that is not wanted.

    contention: how many of the seeds are run coupled; by default all.
    done: called after each run; how many there will be is known only for `planned_runs`.
    """
    from topolane_studies.jigsaw_break_even import search

    def run(tasks: Sequence[Task]) -> list[Measures]:
        return over(measure, tasks, executor=executor, workers=workers, done=done, kept=kept)

    rules = RULES if rules is None else rules
    alone = runs_of(plan(chosen, [*rules, GAINING], seeds), run)
    network = Network(communication=COMMUNICATION)
    coupled = runs_of(plan(chosen, rules, seeds[:contention], network), run)
    found = JigsawResults(list(chosen), list(rules), alone, coupled, {})
    if not break_even:
        return found
    return dataclasses.replace(found, break_even=search(found, seeds, run))


def joined(parts: Sequence[JigsawResults]) -> JigsawResults:
    """The results of several loads under the same rules as one."""
    return JigsawResults(
        [load for part in parts for load in part.loads],
        parts[0].rules,
        dict(ChainMap(*(part.alone for part in parts))),
        dict(ChainMap(*(part.coupled for part in parts))),
        dict(ChainMap(*(part.break_even for part in parts))),
    )


def planned_runs(chosen: Sequence[JigsawLoad], seeds: Sequence[int], contention: int | None = None) -> int:
    """The runs of `study` that there are in any case; the search for break-evens adds some."""
    return len(chosen) * (len(seeds) * (len(RULES) + 1) + len(seeds[:contention]) * len(RULES))


def interval(values: Sequence[float]) -> tuple[float, float, float]:
    """Mean and 95 % confidence interval of the mean, by Student's t; of one value, that value."""
    found = over_seeds.mean_of(values)
    if found.low is None or found.high is None:
        return found.mean, found.mean, found.mean
    return found.mean, found.low, found.high


def mean_of(runs: Sequence[Mapping[str, float]], key: str) -> float:
    """A measure over all seeds."""
    return sum(run[key] for run in runs) / len(runs)


USE, USE_POINTS = 95.5, within_points(1.0)
"""Per cent of a machine in use, which the paper gives as 95 to 96, and how near ours must be. Fixed before the rows were first run."""


def rows(results: JigsawResults) -> list[PaperRow]:
    """What the paper's abstract claims, on loads such as its own: exponential sizes and logs. Ours is rebuilt from memory."""
    found = []
    for load in results.loads:
        if load.workload == "cab-sep":  # a month of SC'18
            continue
        use = [100 * run["utilization_while_waiting"] for run in results.alone[load.name, JIGSAW.label]]
        first = 100 * mean_of(results.alone[load.name, FIRST_FIT.label], "utilization_while_waiting")
        what, why = f"utilisation while jobs wait, {load.name} (%)", f"first-fit {first:.1f}"
        found.append(figure(what, USE, use, USE_POINTS, form=".1f", why=why))
        for key, name, claim in (
            ("mean_turnaround", "turnaround", "lower"),
            ("makespan", "throughput", "higher"),
        ):
            ratio = interval(results.ratios(load.name, GAINING.label, key))[0]
            without = interval(results.ratios(load.name, JIGSAW.label, key))[0]
            what = f"{name} where jobs gain {GAIN} %, {load.name}"
            shown, why = f"{key.replace('_', ' ')} {ratio:.3f} of it", f"without a gain {without:.3f}"
            found.append(direction(what, f"{claim} than ordinary scheduling", ratio < 1, shown, why))
    if not any(load.kind == "trace" for load in results.loads):
        why = "no log was given (--trace)"
        found.append(missing("utilisation while jobs wait, logs (%)", f"{USE:g}", why, value=True))
    return found


def seeds_of(quick: bool) -> range:
    """The seeds of a run."""
    return range(1, (2 if quick else 8) + 1)


def rows_for_summary(quick: bool, workers: int | None) -> list[PaperRow]:
    """What `topolane paper jigsaw` judges, without the runs that only its tables need."""
    rules = [FIRST_FIT, JIGSAW]
    return rows(study(loads(), seeds_of(quick), contention=0, rules=rules, break_even=False, workers=workers))
