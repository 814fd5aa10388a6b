"""The break-even speed-up: how much shorter isolated jobs must run for a rule to cost no job anything."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from topolane_studies.jigsaw import FIRST_FIT, JigsawLoad, mean_of, plan, runs_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from topolane.sweep import Task

    from topolane_studies.jigsaw import JigsawResults, Measures

MOST = 16.0
"""The largest cut looked at, per cent; where it is not enough the answer is infinite."""
ROUNDS = 7
"""Halvings: the answer is known to an eighth of a per cent."""
SEEDS = 4
"""The number of seeds, the first ones; the ratios use all."""


def measure_of(load: JigsawLoad) -> str:
    """What is to be as with first fit.

    The mean wait of a log. Of jobs that are submitted faster than any machine could run them, it shows how many narrow
    ones overtake, and is shorter under every rule that blocks wide ones: there it is the makespan.
    """
    return "mean_wait" if load.kind == "trace" else "makespan"


def search(
    results: JigsawResults, seeds: Sequence[int], run: Callable[[Sequence[Task]], list[Measures]]
) -> dict[tuple[str, str], float]:
    """By load and rule the cut in run time of jobs of more than four nodes at which first fit is met, per cent.

    By bisection, all at once: every round is one sweep.
    """
    few = list(seeds)[:SEEDS]
    aim = {
        load.name: mean_of(results.alone[load.name, FIRST_FIT.label][: len(few)], measure_of(load))
        for load in results.loads
    }
    bounds = {}
    for load in results.loads:
        for rule in results.rules:
            now = mean_of(results.alone[load.name, rule.label][: len(few)], measure_of(load))
            bounds[load.name, rule.label] = (0.0, 0.0) if now <= aim[load.name] else (0.0, MOST)
    for _ in range(ROUNDS):
        planned = []
        for load in results.loads:
            for rule in results.rules:
                low, high = bounds[load.name, rule.label]
                if high > low:
                    scenario = f"{(low + high) / 2:g}"
                    for key, task in plan([load], [rule], few):
                        planned.append((key, dataclasses.replace(task, scenario=scenario)))
        found = runs_of(planned, run)
        for load in results.loads:
            for rule in results.rules:
                key = (load.name, rule.label)
                if key in found:
                    low, high = bounds[key]
                    middle = (low + high) / 2
                    enough = mean_of(found[key], measure_of(load)) <= aim[load.name]
                    bounds[key] = (low, middle) if enough else (middle, high)
    return {key: float("inf") if low < high == MOST else high for key, (low, high) in bounds.items()}
