"""What the colours of a picture of a machine mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from topolane.units import plural

from .chart import LegendEntry
from .holders import Held
from .style import IDLE, LOCAL, MUTED, SURFACE

LISTED = 5
"""The number of jobs that are named."""


def largest(jobs: Sequence[tuple[str, str]]) -> list[LegendEntry]:
    """The first jobs, each with its text and colour, and how many more there are."""
    entries = [LegendEntry(text, colour) for text, colour in jobs[:LISTED]]
    more = len(jobs) - LISTED
    return entries + ([LegendEntry(f"and {plural(more, 'smaller job')}", SURFACE)] if more > 0 else [])


def of_nodes(state: Held, names: Mapping[int, str], switch: str, *lines: LegendEntry) -> list[LegendEntry]:
    """The largest jobs that span switches, what the other colours of nodes mean, and the entries of lines."""
    jobs = [(f"{names[job]}: {plural(state.size[job], 'node')}", state.colour[job]) for job in state.spanning]
    return [
        *largest(jobs),
        LegendEntry(f"jobs inside one {switch}", LOCAL),
        LegendEntry("idle", IDLE),
        *([LegendEntry("out of service", MUTED)] if state.out_of_service else []),
        *lines,
    ]
