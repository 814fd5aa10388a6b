"""Runs of the same rules under several seeds: means with confidence intervals, and differences between rules."""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import TYPE_CHECKING, Any

from topolane.sweep import Task, tasks_for
from topolane.units import plural

if TYPE_CHECKING:
    from collections.abc import Sequence

    from topolane.run import Run

CONFIDENCE = 0.95
WHILE_WAITING = "utilization_while_waiting"
FIGURES = (
    "mean_wait",
    "mean_wait_by_work",
    "p95_wait",
    "mean_slowdown",
    "utilization",
    WHILE_WAITING,
    "makespan",
    "mean_turnaround",
    "mean_aph",
    "jobs_sharing_links",
)
"""Figures of a summary for which the mean over the seeds is given."""


@dataclasses.dataclass(frozen=True)
class Mean:
    """The mean of a figure over the seeds that have it, and its confidence interval; of one seed there is none."""

    seeds: int
    mean: float
    low: float | None
    high: float | None

    @property
    def half(self) -> float | None:
        """Half of the interval; None if there is none, or if the figure is the same under every seed."""
        return None if self.high is None or self.high == self.low else self.high - self.mean


@dataclasses.dataclass(frozen=True)
class Row:
    """The same rules and the same load under all seeds."""

    load: float | None
    policy: str
    queue: str
    scenario: str
    network: str | None
    seeds: int
    figures: dict[str, Mean | None]
    """None where no seed has the figure."""
    difference: dict[str, Mean | None] | None
    """From the first policy under the same load, queue and network, between runs with the same seed; None for that policy."""

    @property
    def label(self) -> str:
        """The rules in a few words, without the load."""
        parts = [self.policy, self.queue, "" if self.scenario == "none" else self.scenario, self.network]
        return ", ".join(part for part in parts if part)


def tasks_of(
    base: Task,
    seeds: Sequence[int],
    loads: Sequence[float | None],
    policy_names: Sequence[str],
    queues: Sequence[str],
    scenarios: Sequence[str],
) -> list[Task]:
    """The tasks of `sweep.tasks_for` under every load and seed."""
    return [
        task
        for load in loads
        for seed in seeds
        for task in tasks_for(
            dataclasses.replace(base, seed=seed, shape=dataclasses.replace(base.shape, load=load)),
            policy_names,
            queues,
            scenarios,
        )
    ]


def rows(tasks: Sequence[Task], runs: Sequence[Run]) -> list[Row]:
    """A row for every load and every rule, in the order of the tasks."""
    groups: dict[tuple[float | None, str, str, str, str | None], list[dict[str, Any]]] = {}
    for task, run in zip(tasks, runs):
        rule = (task.shape.load, run.policy, run.queue, run.scenario, run.network)
        groups.setdefault(rule, []).append(run.summary)
    found = []
    for rule, summaries in groups.items():
        first = next(
            other for other in groups if (other[0], other[2], other[4]) == (rule[0], rule[2], rule[4])
        )
        difference = None
        if first != rule:
            pairs = list(zip(summaries, groups[first]))
            difference = {
                name: _mean([_less(figure(own, name), figure(its, name)) for own, its in pairs])
                for name in FIGURES
            }
        figures = {name: _mean([figure(summary, name) for summary in summaries]) for name in FIGURES}
        found.append(Row(*rule, len(summaries), figures, difference))
    return found


def figure(summary: dict[str, Any], name: str) -> float | None:
    """A figure of a run; None if the run has none."""
    value: float = summary[name]
    # 0 stands for a run in which no job waits.
    return None if name == WHILE_WAITING and value == 0 else value


def _less(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one - other


def _mean(values: Sequence[float | None]) -> Mean | None:
    known = [value for value in values if value is not None]
    return mean_of(known) if known else None


def sentences(rows: Sequence[Row], *, of_log: bool) -> list[str]:
    """What the intervals say and what they do not. of_log: the jobs are those of a log, and not synthetic."""
    count = rows[0].seeds
    if count == 1:
        return ["one seed: there is no confidence interval"]
    interval = f"{CONFIDENCE:.0%} confidence interval of the mean over {plural(count, 'seed')} (Student's t)"
    found = [
        f"± is half of the {interval}; a figure without ± is the same under every seed",
        f"each interval holds for itself: about one in {1 / (1 - CONFIDENCE):.0f} misses the true mean",
    ]
    if any(row.difference for row in rows):
        found.append("a difference is the mean of differences between runs with the same seed")
    if any(mean is None or mean.seeds < count for row in rows for mean in row.figures.values()):
        found.append("in use while waiting is a mean over only the seeds under which a job waits")
    if of_log:
        found.append(
            "the jobs of the log are the same under every seed: the intervals are of the random draws of a run, and say "
            "nothing about another month"
        )
    else:
        found.append("every seed draws other jobs")
    return found


def text(mean: Mean | None, form: str, unit: float = 1.0) -> str:
    """`1.20 ± 0.05`; without the second where there is no interval, and a dash where there is no mean."""
    if mean is None:
        return "-"
    text = f"{mean.mean / unit:{form}}"
    return text if mean.half is None else f"{text} ± {mean.half / unit:{form.removeprefix('+')}}"


def mean_of(values: Sequence[float]) -> Mean:
    """The mean, with its confidence interval by Student's t if there are several values."""
    mean = math.fsum(values) / len(values)
    if len(values) == 1:
        return Mean(1, mean, None, None)
    if max(values) == min(values):
        return Mean(len(values), values[0], values[0], values[0])
    variance = math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)
    half = student(len(values) - 1) * math.sqrt(variance / len(values))
    return Mean(len(values), mean, mean - half, mean + half)


@functools.cache
def student(freedom: int) -> float:
    """The value that Student's t with that many degrees of freedom exceeds on neither side with probability CONFIDENCE."""
    low, high = 0.0, math.pi / 2
    for _ in range(60):
        angle = (low + high) / 2
        low, high = (angle, high) if _within(angle, freedom) < CONFIDENCE else (low, angle)
    return math.sqrt(freedom) * math.tan(low)


def _within(angle: float, freedom: int) -> float:
    """The probability of |t| < sqrt(freedom) tan(angle): Abramowitz and Stegun, 26.7.3 and 26.7.4."""
    cosine, odd = math.cos(angle), freedom % 2
    term = cosine if odd else 1.0
    total = 0.0
    for power in range(2 + odd, freedom + 1, 2):
        total += term
        term *= cosine * cosine * (power - 1) / power
    total *= math.sin(angle)
    return 2 / math.pi * (angle + total) if odd else total
