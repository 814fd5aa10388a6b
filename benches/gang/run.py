"""Measures the agent that runs gangs: `make bench-gang`.

`python benches/gang/run.py [--quick] [--alone] [--json FILE] [--only FIGURE]`, with the interpreter that has Topolane. Compiles
a C program. On a machine that is busy with other things the figures are those of that. Exit code 1 if a target was
missed.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[level]) for level in (0, 1)]

import switching
from measure import HEADINGS, table


def main() -> int:
    """Prints the figures asked for."""
    figures = {"skew": switching.skew, "agent": switching.own_cpu, "loss": switching.loss}
    parser = argparse.ArgumentParser(description="Measure the agent that runs gangs.")
    parser.add_argument("--quick", action="store_true", help="little of everything")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures here as well")
    parser.add_argument("--only", choices=figures, action="append", help="this figure (repeatable)")
    parser.add_argument("--alone", action="store_true", help="let other programs hardly run meanwhile (root)")
    asked = parser.parse_args()
    switching.ALONE = asked.alone
    before = os.getloadavg()[0]
    rows = [row for name in asked.only or figures for row in figures[name](asked.quick)]
    print(table([HEADINGS, *(row.cells() for row in rows)]))
    print(f"load of the machine before: {before:.1f}")
    if asked.json is not None:
        asked.json.write_text(json.dumps([row.facts() for row in rows], indent=2) + "\n")
    return int(any(row.verdict == "MISSED" for row in rows))


if __name__ == "__main__":
    sys.exit(main())
