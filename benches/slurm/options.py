"""What the benches of the plugin have in common: options, and how they end."""

from __future__ import annotations

import argparse
import json
import os
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from measure import HEADINGS, Row, table


def file(text: str) -> Path:
    """A file that is there."""
    path = Path(text).resolve()
    if not path.is_file():
        raise argparse.ArgumentTypeError(f"{text}: there is no such file")
    return path


def common(parser: argparse.ArgumentParser, nodes: int) -> None:
    """Options of every bench."""
    parser.add_argument(
        "--nodes", type=int, default=nodes, help=f"slurmds, a multiple of 18, or of 324 from 324 on [{nodes}]"
    )
    parser.add_argument("--engine", type=file, help="libtopolane.so [it is compiled]")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures here as well")


def log_options(parser: argparse.ArgumentParser) -> None:
    """Where the jobs come from."""
    parser.add_argument(
        "--log", type=file, help="a log of jobs, SWF or CSV, plain or gzipped [a made-up month of Cab]"
    )
    parser.add_argument("--cores-per-node", type=int, help="of the log, if it counts processors")


def finish(options: argparse.Namespace, rows: Sequence[Row], more: Mapping[str, Any]) -> int:
    """Prints and writes the figures. Returns the exit code: 1 if a target was missed."""
    print(table([HEADINGS, *(row.cells() for row in rows)]))
    if options.json:
        machine = {
            "cores": os.cpu_count(),
            "machine": platform.machine(),
            "python": platform.python_version(),
        }
        asked = {key: str(value) for key, value in vars(options).items() if value is not None}
        figures = [row.facts() for row in rows]
        facts = {"machine": machine, "options": asked, "figures": figures, **more}
        options.json.write_text(json.dumps(facts, indent=2) + "\n")
    return 1 if any(row.verdict == "MISSED" for row in rows) else 0
