"""Interference-free node allocation on fat trees (SC'18): waits, utilisation, makespan, APH.

The paper's job logs are not public. The months here are synthetic; they match what the paper says of
its logs (docs/explanation/sc18-paper.md), so absolute waits may differ; every row says by how much.
"""

from __future__ import annotations

import dataclasses
import math
import statistics
from typing import TYPE_CHECKING, Any

from topolane.sources import Shape
from topolane.sweep import Task, over

from topolane_studies.judging import (
    Tolerance,
    direction,
    figure,
    missing,
    within_factor,
    within_points,
    within_share,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from polars import DataFrame
    from topolane.sweep.kept import Kept

    from topolane_studies import PaperRow

HOUR = 3600.0

OBLIVIOUS, AWARE, V1, V2 = "oblivious", "aware", "V1", "V2"
COLUMNS = {
    OBLIVIOUS: ("first-fit", "none"),
    AWARE: ("isolated", "none"),
    "5 %": ("isolated", "5"),
    "10 %": ("isolated", "10"),
    "20 %": ("isolated", "20"),
    V1: ("isolated", "v1"),
    V2: ("isolated", "v2"),
}
"""Policy and scenario of every column; first-fit is the paper's topology-oblivious allocation."""


@dataclasses.dataclass(frozen=True)
class Pair:
    """A month on a machine, and the paper's mean waits there in hours."""

    name: str
    workload: str
    nodes_x: float
    machine: str
    waits: dict[str, float]
    overloaded: bool


def _pair(
    name: str, workload: str, nodes_x: float, machine: str, waits: tuple[float, float, float, float]
) -> Pair:
    return Pair(name, workload, nodes_x, machine, dict(zip((OBLIVIOUS, AWARE, V1, V2), waits)), waits[0] > 1)


PAIRS = [
    _pair("Aug Cab", "cab-aug", 1, "cab", (0.15, 0.98, 0.8, 0.3)),
    _pair("Sep Cab", "cab-sep", 1, "cab", (295, 330, 327, 307)),
    _pair("Nov Cab", "cab-nov", 1, "cab", (0.01, 0.41, 0.31, 0.10)),
    _pair("Aug-2x Cab", "cab-aug", 2, "cab", (269, 322, 296, 270)),
    _pair("Nov-2x Cab", "cab-nov", 2, "cab", (240, 300, 266, 240)),
    _pair("Aug-2x Pinot", "cab-aug", 2, "pinot", (0.15, 1.2, 0.65, 0.29)),
    _pair("Nov-2x Pinot", "cab-nov", 2, "pinot", (0.01, 0.69, 0.13, 0.04)),
    _pair("Aug-3x Pinot", "cab-aug", 3, "pinot", (110, 148, 126, 103)),
]

# Tolerances and labels: fixed before the study was run under three queue disciplines.
WAIT = within_share(0.25, 0.1, "h")
"""Of a mean wait in hours."""
EFFECT = Tolerance("a third of the effect", lambda ours, paper: abs(ours - paper) <= abs(paper - 1) / 3)
"""Of a ratio to oblivious."""
POINTS = 3.0
"""Of a utilisation or makespan change, in percentage points."""
SIZE = within_factor(2.0)
"""Of the wait of some job sizes."""
LOST_USE = -10.0
"""The paper's change of the utilisation under overload, per cent."""
NEAR = 1.1
"""An APH is near the least possible if it is at most this much of it, in the mean."""
NO_EFFECT = 0.02
"""An effect of the paper under this share counts as none."""
FITTED = "the months are fitted to the waits of the oblivious policy"
CONSERVED = "a month that is not overloaded runs all its jobs soon after they arrive, under any policy"

BINS = {"1": 1, "2-4": 4, "5-17": 17, "18-64": 64, "65-256": 256, "over 256": 2**31}
"""Sizes of jobs, each up to a number of nodes. Two edges are the paper's: under 18, and 65 to 256."""
CLASSES = {"up to 18": 18, "19-324": 324, "over 324": 2**31}
"""Sizes that fit a leaf, a pod, and neither."""


def measure(task: Task) -> dict[str, Any]:
    """A run in the figures that the paper reports; small enough to send home."""
    run = task.run()
    jobs = run.jobs
    nodes = jobs["requested_number_of_resources"]
    medium = jobs.filter((nodes > 1) & (nodes < 128))
    fitting = jobs.filter((nodes > 18) & (nodes <= 324))
    wide = jobs.filter((nodes >= 65) & (nodes <= 256))
    return {
        **run.summary,
        "highest_aph_under_128": medium["aph"].max(),
        "aph_over_least": fitting["aph"].sum() / (fitting["least_aph"].sum() or 1.0),
        "wait_65_256": wide["waiting_time"].mean(),
        "turnaround_by_work": by_work(jobs),
        **sums_by_size(jobs, "wait", "waiting_time", BINS),
        **sums_by_size(jobs, "aph", "aph", CLASSES),
        **sums_by_size(jobs, "least", "least_aph", CLASSES),
        "longest": jobs["execution_time"].max(),
        "widest": nodes.max(),
        "nodes_each_hour": nodes_each_hour(jobs),
    }


def by_work(jobs: DataFrame) -> float:
    """Mean of wait + run, each job weighted by nodes x walltime: no speed-up changes the weights."""
    weight = jobs["requested_number_of_resources"] * jobs["requested_time"]
    return float((weight * jobs["turnaround_time"]).sum() / weight.sum())


def sums_by_size(jobs: DataFrame, name: str, column: str, sizes: dict[str, int]) -> dict[str, Any]:
    """By `NAME SIZE` how many jobs there are, and the sum of a column; a job of one node has no hops."""
    nodes, found, above = jobs["requested_number_of_resources"], {}, 1 if sizes is CLASSES else 0
    for size, most in sizes.items():
        chosen = jobs.filter((nodes > above) & (nodes <= most))
        found[f"{name} {size}"] = (chosen.height, float(chosen[column].sum()))
        above = most
    return found


def nodes_each_hour(jobs: DataFrame) -> list[int]:
    """Nodes that the jobs submitted in each hour ask for, from the first to the last submission."""
    hours = (jobs["submission_time"] / HOUR).cast(int)
    asked = [0] * (hours.max() + 1)
    for hour, nodes in zip(hours, jobs["requested_number_of_resources"]):
        asked[hour] += nodes
    return asked


class Sc18Results:
    """The measures of all runs, by pair and column, one per seed."""

    def __init__(self, runs: dict[tuple[str, str], list[dict[str, Any]]]) -> None:
        self.runs = runs

    def values(self, pair: Pair, column: str, key: str, unit: float = 1.0) -> list[float]:
        """A measure of every seed."""
        return [run[key] / unit for run in self.runs[pair.name, column]]

    def against_oblivious(self, pair: Pair, column: str, key: str) -> list[float]:
        """A measure relative to the oblivious run of the same seed."""
        both = zip(self.values(pair, column, key), self.values(pair, OBLIVIOUS, key))
        return [own / other for own, other in both]

    def mean(self, pair: Pair, column: str, key: str, unit: float = 1.0) -> float:
        """A measure in the mean over the seeds."""
        return statistics.mean(self.values(pair, column, key, unit))

    def per_job(self, pair: Pair, column: str, name: str, sizes: Sequence[str]) -> float:
        """What `sums_by_size` summed up of all seeds, for each job of these sizes; nan where there are none."""
        of = [run[f"{name} {size}"] for run in self.runs[pair.name, column] for size in sizes]
        jobs, total = (sum(values) for values in zip(*of))
        return total / jobs if jobs else math.nan


def tasks(seeds: Sequence[int], queue: str = "easy") -> list[tuple[Pair, str, Task]]:
    """Every run of the study under a queue discipline."""
    return [
        (
            pair,
            column,
            Task(
                pair.machine,
                pair.workload,
                Shape(nodes_x=pair.nodes_x),
                policy=policy,
                queue=queue,
                scenario=scenario,
                seed=seed,
            ),
        )
        for pair in PAIRS
        for column, (policy, scenario) in COLUMNS.items()
        for seed in seeds
    ]


def study(
    seeds: Sequence[int],
    *,
    queue: str = "easy",
    executor: str | None = None,
    workers: int | None = None,
    done: Callable[..., None] | None = None,
    kept: Kept | None = None,
) -> Sc18Results:
    """Runs the eight workload-machine pairs, oblivious, aware and under five speed-ups."""
    planned = tasks(seeds, queue)
    runs_of = [task for _, _, task in planned]
    measures = over(measure, runs_of, executor=executor, workers=workers, done=done, kept=kept)
    runs: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for (pair, column, _), measured in zip(planned, measures):
        runs.setdefault((pair.name, column), []).append(measured)
    return Sc18Results(runs)


def mean_waits(results: Sc18Results, pair: Pair) -> list[float]:
    """Mean wait in hours in every column."""
    return [statistics.mean(results.values(pair, column, "mean_wait", HOUR)) for column in COLUMNS]


def rows(results: Sc18Results) -> list[PaperRow]:
    """The paper's figures next to ours."""
    return [
        *wait_table(results),
        *wait_ratios(results),
        *waits_by_size(results),
        *added_waits(results),
        *machine_use(results),
        *hops(results),
    ]


def spread(values: Sequence[float], form: str) -> str:
    """Mean and range over the seeds."""
    return f"{statistics.mean(values):{form}} ({min(values):{form}} to {max(values):{form}})"


def wait_table(results: Sc18Results) -> list[PaperRow]:
    """Mean wait in hours, cell by cell."""
    table = []
    for pair in PAIRS:
        for column, paper in pair.waits.items():
            by_work = statistics.mean(results.values(pair, column, "mean_wait_by_work", HOUR))
            table.append(
                figure(
                    f"mean wait, {pair.name}, {column} (h)",
                    paper,
                    results.values(pair, column, "mean_wait", HOUR),
                    WAIT,
                    why=f"weighted by node-seconds ours is {by_work:,.2f} h",
                    given=FITTED if column == OBLIVIOUS else "",
                )
            )
    return table


def wait_ratios(results: Sc18Results) -> list[PaperRow]:
    """Under overload: waits relative to oblivious, of means over jobs as in the paper."""
    table = []
    for pair in (pair for pair in PAIRS if pair.overloaded):
        for column in (AWARE, V1, V2):
            paper = pair.waits[column] / pair.waits[OBLIVIOUS]
            by_work = statistics.mean(results.against_oblivious(pair, column, "mean_wait_by_work"))
            table.append(
                figure(
                    f"mean wait / oblivious, {pair.name}, {column}",
                    paper,
                    results.against_oblivious(pair, column, "mean_wait"),
                    EFFECT,
                    neutral=1.0,
                    why=f"weighted by node-seconds ours is {by_work:.2f}",
                    given="the effect of the paper is under 2 %" if abs(paper - 1) < NO_EFFECT else "",
                )
            )
    return table


def waits_by_size(results: Sc18Results) -> list[PaperRow]:
    """August on Cab: jobs of 65-256 nodes."""
    return [
        figure(
            f"wait of 65-256 nodes, Aug Cab, {column} (min)",
            minutes,
            results.values(PAIRS[0], column, "wait_65_256", 60.0),
            SIZE,
            form=",.0f",
        )
        for column, minutes in ((OBLIVIOUS, 10.0), (AWARE, 480.0), ("20 %", 30.0))
    ]


def added_waits(results: Sc18Results) -> list[PaperRow]:
    """What isolation adds to the mean wait over jobs."""
    table = []
    for pair, paper in ((PAIRS[0], 0.75), (PAIRS[-1], 38.0)):
        by_job, by_work = (
            [
                own - other
                for own, other in zip(
                    results.values(pair, AWARE, key, HOUR), results.values(pair, OBLIVIOUS, key, HOUR)
                )
            ]
            for key in ("mean_wait", "mean_wait_by_work")
        )
        why = f"weighted by node-seconds ours is {statistics.mean(by_work):,.2f} h"
        what = f"wait added by isolation, {pair.name} (h)"
        table.append(figure(what, paper, by_job, WAIT, neutral=0.0, why=why))
    return table


def machine_use(results: Sc18Results) -> list[PaperRow]:
    """Under overload: utilisation lost and makespan gained against oblivious. Elsewhere both stay."""
    table = []
    for pair in (pair for pair in PAIRS if not pair.overloaded):
        for key, name in (("utilization", "utilisation"), ("makespan", "makespan")):
            table.append(change(results, pair, f"{name}, {pair.name}", AWARE, key, 0.0, given=CONSERVED))
    for pair in (pair for pair in PAIRS if pair.overloaded):
        what = f"utilisation while jobs wait, {pair.name}"
        table.append(change(results, pair, what, AWARE, "utilization_while_waiting", LOST_USE))
        for column, paper in later_ends(pair).items():
            what = f"makespan, {pair.name}"
            table.append(change(results, pair, what, column, "makespan", paper, up_to=column == AWARE))
    return table


def later_ends(pair: Pair) -> dict[str, float]:
    """The paper's changes of the makespan under overload in per cent, by column; aware is the greatest of all pairs."""
    sep = pair.name == "Sep Cab"
    return {AWARE: 9.0, V1: 9.0 if sep else 0.0, V2: 4.0 if sep else 0.0}


def change(
    results: Sc18Results,
    pair: Pair,
    what: str,
    column: str,
    key: str,
    paper: float,
    *,
    up_to: bool = False,
    given: str = "",
) -> PaperRow:
    """A change in per cent against oblivious. up_to: the paper gives the greatest of all pairs."""
    ours = [100 * (ratio - 1) for ratio in results.against_oblivious(pair, column, key)]
    most = paper + POINTS
    below = Tolerance(f"above 0, to {most:+g}", lambda ours, _: 0 < ours <= most)
    return figure(
        f"{what}, {column} (%)",
        paper,
        ours,
        below if up_to else within_points(POINTS),
        neutral=0.0 if paper else None,
        shown=(f"{'up to ' if up_to else 'about '}{paper:+.0f}", spread(ours, "+.1f")),
        given=given,
    )


def hops(results: Sc18Results) -> list[PaperRow]:
    """APH of the aware allocation."""
    highest = [run["highest_aph_under_128"] for pair in PAIRS for run in results.runs[pair.name, AWARE]]
    over_least = [run["aph_over_least"] for pair in PAIRS for run in results.runs[pair.name, AWARE]]
    return [
        direction(
            "highest APH of jobs under 128 nodes, aware",
            "under 2",
            max(highest) < 2,
            f"{max(highest):.3f}",
            given="the rule keeps a job that fits in a pod inside one",
        ),
        direction(
            "APH over the least possible, 19 to 324 nodes, aware",
            "near",
            statistics.mean(over_least) <= NEAR,
            spread(over_least, ".3f"),
            f"sum over jobs of APH over sum of the least; near is at most {NEAR}",
        ),
        missing(
            "APH of recorded placements",
            "far above the least",
            "the logs with node lists are not public; `--policy recorded` measures it on yours",
            side=True,
        ),
    ]
