"""The files of a report. A later report in the same directory replaces these files and no others."""

from __future__ import annotations

ONCE = (
    "mean-wait",
    "wait-by-size",
    "wait-change",
    "wait-distribution",
    "wait-over-seeds",
    "nodes-in-use",
    "utilisation",
    "makespan",
    "aph",
    "job-sizes",
    "contention",
    "contention-by-pattern",
    "contention-by-size",
    "room-for-jobs",
    "stranded-gpus",
    "baseline",
)
"""Figures of all runs together."""
BY_RUN = ("dragonfly", "fat-tree", "link-heat", "racks", "switches")
"""Figures of a single run, whose number follows the name."""

OWN = (
    "report.html",
    *(
        f"figures/{name}.{kind}"
        for name in (*ONCE, *(f"{name}-[0-9]*" for name in BY_RUN))
        for kind in ("svg", "png")
    ),
)
