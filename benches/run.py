"""Measures what Topolane promises and says what was met.

`python benches/run.py [--quick] [--json FILE] [--trace FILE] [--peers] [--only NAME]`, with the
interpreter Topolane is installed in. `docs/benchmarks/engine.md` says what the figures mean.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).resolve().parent))

from figures import FIGURES, LONG, Setting, measured
from gpu_month import gpu_month
from mapping import mapping_peers
from measure import HEADINGS, table
from peers import peers

if TYPE_CHECKING:
    from measure import Row

REPEATS = 5
LONG_FIGURES = LONG | {"gpu-month": gpu_month}


def arguments() -> argparse.Namespace:
    """What the user asks for."""
    parser = argparse.ArgumentParser(description="Measure what Topolane promises.")
    parser.add_argument("--quick", action="store_true", help="each figure once: to see that all work")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures here as well")
    parser.add_argument(
        "--trace", type=Path, metavar="FILE", help="LLNL-Atlas-2006-2.1-cln.swf[.gz], for atlas and peers"
    )
    parser.add_argument(
        "--peers", action="store_true", help="install others aside and run them too (minutes)"
    )
    parser.add_argument(
        "--only",
        choices=[*FIGURES, *LONG_FIGURES, "peers", "mapping-peers"],
        action="append",
        help=f"this figure (repeatable); {', '.join(LONG_FIGURES)} only if named: they take long",
    )
    options = parser.parse_args()
    if options.trace is not None:
        options.trace = options.trace.resolve()
        if not options.trace.is_file():
            parser.error(f"--trace {options.trace}: there is no such file")
    return options


def figures(options: argparse.Namespace, setting: Setting) -> list[Row]:
    """Measures what is asked for."""
    wanted = dict(FIGURES)
    if options.peers or "peers" in (options.only or ()):
        wanted["peers"] = peers
    wanted |= {name: figure for name, figure in LONG_FIGURES.items() if name in (options.only or ())}
    if options.peers or "mapping-peers" in (options.only or ()):
        wanted["mapping-peers"] = mapping_peers
    rows: list[Row] = []
    for name, figure in wanted.items():
        if options.only is None or name in options.only:
            print(f"measuring {name}", file=sys.stderr)
            rows += measured(name, figure, setting)
    return rows


def main() -> int:
    """Measures, prints and writes; 1 if a target was missed or a figure failed."""
    options = arguments()
    with tempfile.TemporaryDirectory(prefix="topolane-bench-") as scratch:
        setting = Setting(1 if options.quick else REPEATS, options.trace, Path(scratch))
        rows = figures(options, setting)
    print(table([HEADINGS, *(row.cells() for row in rows)]))
    if options.trace is None:
        print("Atlas not measured: no trace (give --trace FILE).")
    if not options.peers and not options.only:
        print("Peers not measured: give --peers.")
    if options.json:
        machine = {
            "cores": os.cpu_count(),
            "machine": platform.machine(),
            "python": platform.python_version(),
        }
        facts = {"machine": machine, "figures": [row.facts() for row in rows]}
        options.json.write_text(json.dumps(facts, indent=2) + "\n")
    failed = [row for row in rows if row.verdict == "MISSED" or row.what == "failed"]
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
