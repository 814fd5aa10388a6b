"""Compares the models of contention with SimGrid, SMPI and ns-3: `make validate`.

`python benches/validation/run.py [--quick] [--json FILE] [--only PART]`, with the interpreter
Topolane is installed in. `docs/explanation/validation.md` says what the figures mean. Exit code 1 if a promise
is broken, 2 if a component is missing.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from components import Missing, Programs
from packets import packet_rows
from rates import rate_rows
from slowdowns import model_rows, smpi_rows
from speed import COUNTS, speed_rows

# What is promised: rates as SimGrid's, and jobs in the order that max-min puts them in.
SAME_RATE = 1e-6
SAME_ORDER = 0.9


@dataclass(frozen=True)
class Part:
    """One comparison: a table, and what it must show."""

    title: str
    rows: Callable[[Programs, bool], Sequence[Any]]
    """Its rows; the flag asks for a few only."""
    promise: str = ""
    kept: Callable[[Any], bool] = lambda row: True


PARTS = {
    "rates": Part(
        "max-min and SimGrid: rates of flows",
        lambda programs, quick: rate_rows(programs, 2 if quick else 9),
        f"every rate within {SAME_RATE:g}",
        lambda row: row.difference <= SAME_RATE,
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
    "speed": Part(
        "max-min and SimGrid: CPU seconds of solving, one core",
        lambda programs, quick: speed_rows(programs, COUNTS[:2] if quick else COUNTS, 1 if quick else 5),
    ),
}


def cell(value: object) -> str:
    """A value of a table."""
    if value is None:
        return "-"
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def table(rows: Sequence[dict[str, object]]) -> str:
    """A Markdown table, aligned to be read as it stands."""
    lines = [[name.replace("_", " ") for name in rows[0]], *([cell(v) for v in row.values()] for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    shown = [
        "| " + " | ".join(text.ljust(width) for text, width in zip(line, widths)) + " |" for line in lines
    ]
    shown.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(shown)


def arguments() -> argparse.Namespace:
    """What the user asks for."""
    parser = argparse.ArgumentParser(description="Compare the models of contention with other simulators.")
    parser.add_argument("--quick", action="store_true", help="a few of each: to see that all work")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows here as well")
    parser.add_argument("--only", choices=PARTS, action="append", help="this part (repeatable)")
    parser.add_argument(
        "--programs",
        type=Path,
        metavar="DIR",
        default=Path("target/validation"),
        help="where the other simulators' programs are compiled (default: %(default)s)",
    )
    return parser.parse_args()


def main() -> int:
    """Compares, prints and writes."""
    options = arguments()
    programs = Programs(options.programs.resolve())
    told: dict[str, list[dict[str, object]]] = {}
    broken: list[str] = []
    missing: list[str] = []
    for name, part in PARTS.items():
        if options.only is not None and name not in options.only:
            continue
        print(f"comparing {name}", file=sys.stderr)
        try:
            rows = part.rows(programs, options.quick)
        except Missing as absent:
            missing.append(f"{name} not compared: {absent}")
            continue
        told[name] = [asdict(row) for row in rows]
        kept = all(map(part.kept, rows))
        verdict = f" - {part.promise}: {'kept' if kept else 'BROKEN'}" if part.promise else ""
        print(f"\n## {part.title}{verdict}\n\n{table(told[name])}", flush=True)
        if not kept:
            broken.append(name)
    for line in missing:
        print(line, file=sys.stderr)
    if options.json is not None:
        options.json.write_text(json.dumps(told, indent=2) + "\n")
    return 1 if broken else 2 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
