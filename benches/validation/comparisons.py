"""Compares the contention models with SimGrid, SMPI and ns-3.

`docs/explanation/validation.md` explains the figures. The exit code is 1 if a promise is broken, and 2 if a
component is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from components import Programs
from measure import Options, Result, table
from packets import packet_rows
from rates import rate_rows
from simgrid_networks import is_kept, pattern_rows
from slowdowns import model_rows, smpi_rows
from speed import COUNTS, speed_rows
from speedups import speedup_rows

# The promises: rates equal SimGrid's, and jobs are ranked as by max-min.
SAME_RATE = 1e-6
SAME_ORDER = 0.9


@dataclass(frozen=True)
class Part:
    """One comparison: a table, and what it must show."""

    title: str
    rows: Callable[[Programs, bool], Sequence[Any]]
    """Its rows; the flag requests only a few of them."""
    promise: str = ""
    kept: Callable[[Any], bool] = lambda row: True


PARTS = {
    "rates": Part(
        "max-min and SimGrid: rates of flows",
        lambda programs, quick: rate_rows(programs, 2 if quick else 9),
        f"every rate within {SAME_RATE:g}",
        lambda row: row.difference <= SAME_RATE,
    ),
    "dragonfly": Part(
        "max-min and SimGrid's dragonfly and torus: rates of flows",
        lambda programs, quick: pattern_rows(programs, 1 if quick else 5),
        "over the same routes all rates within 1e-6",
        is_kept,
    ),
    "models": Part(
        "congestion and max-min: slowdowns of jobs",
        lambda programs, quick: model_rows(2 if quick else 15),
        f"Spearman at least {SAME_ORDER}",
        lambda row: row.spearman >= SAME_ORDER,
    ),
    "smpi": Part(
        "congestion, max-min and an MPI program under SMPI: slowdowns of jobs",
        lambda programs, quick: smpi_rows(programs, 1 if quick else 2, 2 if quick else 4),
    ),
    "packets": Part(
        "max-min and TCP under ns-3: rates of flows",
        lambda programs, quick: packet_rows(programs, 0.5 if quick else 3),
    ),
    "speed-ups": Part(
        "the SC'18 network study and messages under ns-3: speed-ups of isolation",
        lambda programs, quick: speedup_rows(programs, 1 if quick else 3),
    ),
    "speed": Part(
        "max-min and SimGrid: CPU seconds of solving, one core",
        lambda programs, quick: speed_rows(programs, COUNTS[:2] if quick else COUNTS, 1 if quick else 5),
    ),
}


def cell(value: object) -> str:
    """A value as the text of a table cell."""
    if value is None:
        return "-"
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def measure(options: Options) -> Result:
    """Compares and prints. Raises RuntimeError for a missing component."""
    part = PARTS[options.case.partition("/")[2]]
    rows = part.rows(Programs(options.programs.resolve()), options.quick)
    facts = [asdict(row) for row in rows]
    kept = all(map(part.kept, rows))
    verdict = f" - {part.promise}: {'kept' if kept else 'BROKEN'}" if part.promise else ""
    cells = [
        [name.replace("_", " ") for name in facts[0]],
        *([cell(value) for value in row.values()] for row in facts),
    ]
    print(f"\n## {part.title}{verdict}\n\n{table(cells)}", flush=True)
    return Result(facts=facts, failed=not kept)
