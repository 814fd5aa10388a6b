"""Two-level collectives against flat ones on the study's two sites, at each latency."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

from topolane.sweep import over

from topolane_studies import sites, sites_collectives
from topolane_studies.sites_collectives import CollectiveCase

if TYPE_CHECKING:
    from collections.abc import Callable

SIZES = (0, 8, 16384, 65536)
"""Bytes of the calls that are shown: nothing in a barrier, a number, a piece, and a large one."""
PROGRAM = "collectives-program"
"""The folder of the compiled program."""


@dataclasses.dataclass(frozen=True)
class LevelsTask:
    """One run, small enough to send to a process."""

    programs: Path
    case: CollectiveCase


@dataclasses.dataclass(frozen=True)
class LevelsLine:
    """A call of a size: seconds (flat, two-level) by latency."""

    placement: str
    collective: str
    size: int
    seconds: dict[float, tuple[float, float]]


def tasks(programs: Path) -> list[LevelsTask]:
    """Ranks in a row on a site, and dealt out in turn, at every latency with TCP's window."""
    return [
        LevelsTask(programs, CollectiveCase(2, latency, placement=placement, window=sites.WINDOW))
        for placement in sites_collectives.PLACEMENTS
        for latency in sites.LATENCIES
    ]


def measured(task: LevelsTask) -> list[sites_collectives.CollectiveRow]:
    """What a run takes."""
    return sites_collectives.measure(task.programs, task.case)


def build(programs: Path) -> None:
    """Compiles the library into a program. Raises Missing where that cannot be done."""
    folder = programs / PROGRAM
    folder.mkdir()
    sites_collectives.build(folder)


def study(
    programs: Path, *, workers: int | None = None, done: Callable[[], None] | None = None
) -> list[LevelsLine]:
    """All calls of the sizes shown, by what `build` left there."""
    folder = programs / PROGRAM
    found: dict[tuple[str, str, int], dict[float, tuple[float, float]]] = {}
    for rows in over(measured, tasks(folder), workers=workers, done=done):
        for row in rows:
            if row.size in SIZES:
                line = found.setdefault((row.placement, row.collective, row.size), {})
                line[row.latency] = (row.flat, row.two_level)
    return [LevelsLine(*key, seconds) for key, seconds in found.items()]
