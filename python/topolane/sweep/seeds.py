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
"""The quantities of a summary for which a mean over seeds is given."""


@dataclasses.dataclass(frozen=True)
class Mean:
    """The mean of a quantity over the seeds that have it, with its confidence interval; a single seed has no
    interval.
    """

    seeds: int
    mean: float
    low: float | None
    high: float | None

    @property
    def half(self) -> float | None:
        """Half the width of the interval; None without an interval, or if the value is the same under every
        seed.
        """
        return None if self.high is None or self.high == self.low else self.high - self.mean


@dataclasses.dataclass(frozen=True)
class SeedsRow:
    """One combination of rules and load, over all seeds."""

    load: float | None
    policy: str
    queue: str
    scenario: str
    network: str | None
    seeds: int
    figures: dict[str, Mean | None]
    """None for a quantity that no seed has."""
    difference: dict[str, Mean | None] | None
    """The difference from the first policy with the same load, queue and network, between runs with the same
    seed; None for that policy.
    """

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
    """The tasks of `sweep.tasks_for` for each load and seed."""
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


def rows(tasks: Sequence[Task], runs: Sequence[Run]) -> list[SeedsRow]:
    """A row for each load and combination of rules, in the order of the tasks."""
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
        found.append(SeedsRow(*rule, len(summaries), figures, difference))
    return found


def figure(summary: dict[str, Any], name: str) -> float | None:
    """A quantity of a run; None if the run has no value for it."""
    value: float = summary[name]
    # 0 means that no job waited in this run.
    return None if name == WHILE_WAITING and value == 0 else value


def _less(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one - other


def _mean(values: Sequence[float | None]) -> Mean | None:
    known = [value for value in values if value is not None]
    return mean_of(known) if known else None


def sentences(rows: Sequence[SeedsRow], *, of_log: bool) -> list[str]:
    """Sentences on what the intervals say and what they do not say. of_log: whether the jobs come from a log."""
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
        found.append("utilisation while jobs wait is a mean over only the seeds under which a job waits")
    if of_log:
        found.append(
            "the jobs of the log are the same under every seed: the intervals are of the random draws of a run, and say "
            "nothing about another month"
        )
    else:
        found.append("every seed draws other jobs")
    return found


def text(mean: Mean | None, form: str, unit: float = 1.0) -> str:
    """A mean as text: `1.20 ± 0.05`; without the second number if there is no interval; a dash if there is no
    mean.
    """
    if mean is None:
        return "-"
    text = f"{mean.mean / unit:{form}}"
    return text if mean.half is None else f"{text} ± {mean.half / unit:{form.removeprefix('+')}}"


def mean_of(values: Sequence[float]) -> Mean:
    """The mean; for several values with its confidence interval by Student's t."""
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
    """The t for which a variable with this many degrees of freedom lies between -t and t with probability
    CONFIDENCE.
    """
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
