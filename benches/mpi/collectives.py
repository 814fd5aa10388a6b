"""Collectives in two levels against flat ones, simulated: every setting, and what is gained over all of them.

    python benches/mpi/collectives.py [--quick] [--json]

Needs SimGrid. The limits in native/mpi/collectives/choose.c are from here.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import json
import statistics
import tempfile
from collections import defaultdict
from pathlib import Path

from topolane.studies.sites_collectives import PLACEMENTS, SELECTORS, SITES, Case, Row, build, measure

LATENCIES = (1e-3, 10e-3)


def cases(quick: bool) -> list[Case]:
    if quick:
        return [Case(2, 5e-3)]
    return [Case(*each) for each in itertools.product(SITES, LATENCIES, SELECTORS, PLACEMENTS)]


def summary(rows: list[Row]) -> str:
    """Least, middle and most gain of each call and size over the settings."""
    gains: dict[tuple[str, int], list[float]] = defaultdict(list)
    for row in rows:
        gains[row.collective, row.size].append(row.flat / row.two_level)
    lines = ["| call | bytes | least | median | most |", "|---|---|---|---|---|"]
    for (call, size), of in gains.items():
        lines.append(f"| {call} | {size:,} | {min(of):.2f} | {statistics.median(of):.2f} | {max(of):.2f} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="two sites at 5 ms only")
    parser.add_argument("--json", action="store_true", help="every row")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="topolane-") as folder:
        programs = build(Path(folder))
        rows = [row for case in cases(options.quick) for row in measure(programs, case)]
    print(json.dumps([dataclasses.asdict(row) for row in rows]) if options.json else summary(rows))


if __name__ == "__main__":
    main()
