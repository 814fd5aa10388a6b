"""Free capacity on a machine with GPUs, as the figures read it from the summaries of runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .data import ReportedRun

PLACES = ("node", "domain", "segments", "leaf", "pod")
"""The places where a job may fit, smallest first."""
SMALLEST = 8
"""GPUs of the smallest job shown."""
CAUSES = (
    ("without_cores", "no cores left"),
    ("without_memory", "no memory left"),
    ("scraps", "scraps"),
)
"""The causes of stranded GPUs, with their descriptions."""


def with_room(runs: Sequence[ReportedRun]) -> list[ReportedRun]:
    """The runs whose summary records free capacity."""
    return [run for run in runs if (run.summary.get("room") or {}).get("fits")]


def sizes(runs: Sequence[ReportedRun]) -> list[int]:
    """The job sizes to show, in GPUs: those of which a job fitted at some time in some run."""
    room = runs[0].summary["room"]
    every = [fit["size"] for fit in room["fits"]]
    shown = [size for size in every if any(fits(run, size, "site")[1] > 0 for run in runs)]
    return [size for size in shown if size >= SMALLEST] or shown


def fits(run: ReportedRun, size: int, place: str) -> tuple[float, float]:
    """The mean number of further jobs of a size that fit in a place, and the fraction of time in which at
    least one fits.
    """
    room: Mapping[str, Any] = run.summary["room"]
    levels = [*room["levels"][:-1], "site"]  # the last level is the whole machine
    fit = next((fit for fit in room["fits"] if fit["size"] == size), None)
    if fit is None or place not in levels:
        return 0.0, 0.0
    index = levels.index(place)
    return float(fit["jobs"][index]), float(fit["share_of_time"][index])


def place_of(runs: Sequence[ReportedRun], size: int) -> str:
    """The smallest place that could take jobs of this size in one of the runs."""
    found = (place for place in PLACES if any(fits(run, size, place)[1] > 0 for run in runs))
    return next(found, "site")
