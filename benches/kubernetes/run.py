"""Measures topolane-scheduler on a real control plane with nodes of KWOK: `make bench-kubernetes`.

`python benches/kubernetes/run.py [hundred|scale|soak] [OPTION]...`, with the interpreter in which Topolane is installed; without a
name: hundred. `--help` after the name lists the options. The exit code is 1 if a target was missed or a rule was broken, and 2 for
wrong options or a missing component.
"""

from __future__ import annotations

import importlib
import signal
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), *(str(HERE.parents[1] / "tests" / part) for part in ("kubernetes", ""))]

BENCHES = ("hundred", "scale", "soak")


def main(words: list[str]) -> int:
    """Runs the bench of that name."""
    if not words or words[0].startswith("--"):
        words = ["hundred", *words]
    if words[0] not in BENCHES:
        print(f"there is no bench '{words[0]}'; name one of: {', '.join(BENCHES)}", file=sys.stderr)
        return 2
    bench = importlib.import_module(words[0])
    options = bench.arguments(words[1:])
    # All processes that were started end with this one.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        return int(bench.measure(options))
    except (RuntimeError, ValueError, OSError, AssertionError) as error:
        print(f"{words[0]}: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
