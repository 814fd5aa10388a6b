"""Measures the plugin of Nova's scheduler: `make bench-nova`.

`python benches/nova/run.py [--quick] [--json FILE] [--only FIGURE]`, with the interpreter that has Topolane
and Nova. `docs/benchmarks/nova.md` says what the figures mean. Exit code 1 if a target was missed, 2 if Nova is
missing.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[level]) for level in (0, 1)]

from measure import HEADINGS, table
from optimum import optimum
from weighing import weighing

FIGURES = {"weighing": weighing, "optimum": optimum}


def main() -> int:
    """Prints the figures asked for."""
    parser = argparse.ArgumentParser(description="Measure the plugin of Nova's scheduler.")
    parser.add_argument("--quick", action="store_true", help="little of everything")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures here as well")
    parser.add_argument("--only", choices=FIGURES, action="append", help="this figure (repeatable)")
    asked = parser.parse_args()
    if importlib.util.find_spec("nova") is None:
        print("Nova is missing: pip install -e '.[nova-test]'", file=sys.stderr)
        return 2
    rows = [row for name in asked.only or FIGURES for row in FIGURES[name](asked.quick)]
    print(table([HEADINGS, *(row.cells() for row in rows)]))
    if asked.json is not None:
        asked.json.write_text(json.dumps([row.facts() for row in rows], indent=2) + "\n")
    return int(any(row.verdict == "MISSED" for row in rows))


if __name__ == "__main__":
    sys.exit(main())
