"""Simulates collectives in two levels and flat ones: every setting, and the gain over all settings.

It needs SimGrid. With --quick: only two sites at 5 ms. The limits in native/mpi/collectives/choose.c come
from here.
"""

from __future__ import annotations

import dataclasses
import itertools
import statistics
import tempfile
from collections import defaultdict
from pathlib import Path

from measure import Options, Result
from topolane_studies.sites_collectives import (
    PLACEMENTS,
    SELECTORS,
    SITES,
    CollectiveCase,
    CollectiveRow,
    build,
)
from topolane_studies.sites_collectives import measure as measured

LATENCIES = (1e-3, 10e-3)


def cases(quick: bool) -> list[CollectiveCase]:
    if quick:
        return [CollectiveCase(2, 5e-3)]
    return [CollectiveCase(*each) for each in itertools.product(SITES, LATENCIES, SELECTORS, PLACEMENTS)]


def summary(rows: list[CollectiveRow]) -> str:
    """Least, median and largest gain of each call and size over the settings."""
    gains: dict[tuple[str, int], list[float]] = defaultdict(list)
    for row in rows:
        gains[row.collective, row.size].append(row.flat / row.two_level)
    lines = ["| call | bytes | least | median | most |", "|---|---|---|---|---|"]
    for (call, size), of in gains.items():
        lines.append(f"| {call} | {size:,} | {min(of):.2f} | {statistics.median(of):.2f} | {max(of):.2f} |")
    return "\n".join(lines)


def measure(options: Options) -> Result:
    """Prints the gain of each call."""
    with tempfile.TemporaryDirectory(prefix="topolane-") as folder:
        programs = build(Path(folder))
        rows = [row for case in cases(options.quick) for row in measured(programs, case)]
    print(summary(rows))
    return Result(facts=[dataclasses.asdict(row) for row in rows])
