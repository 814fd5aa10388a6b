"""Measures the manager of several sites: `make bench-sites`.

`python benches/sites/run.py [--quick] [--json FILE] [--only FIGURE]`, with the interpreter that has Topolane and
its extra sites. `docs/benchmarks/sites.md` says what the figures mean. Exit code 1 if a target was missed, 2 if the extra
is missing.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[level]) for level in (0, 1)]

from measure import HEADINGS, table


def main() -> int:
    """Prints the figures asked for."""
    if importlib.util.find_spec("sqlalchemy") is None:
        print("the extra sites is missing: pip install -e '.[sites]'", file=sys.stderr)
        return 2
    from choosing import choosing
    from reporting import reporting

    figures = {"reporting": reporting, "choosing": choosing}
    parser = argparse.ArgumentParser(description="Measure the manager of several sites.")
    parser.add_argument("--quick", action="store_true", help="little of everything")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures here as well")
    parser.add_argument("--only", choices=figures, action="append", help="this figure (repeatable)")
    asked = parser.parse_args()
    rows = [row for name in asked.only or figures for row in figures[name](asked.quick)]
    print(table([HEADINGS, *(row.cells() for row in rows)]))
    if asked.json is not None:
        asked.json.write_text(json.dumps([row.facts() for row in rows], indent=2) + "\n")
    return int(any(row.verdict == "MISSED" for row in rows))


if __name__ == "__main__":
    sys.exit(main())
