"""The command line of the Topolane in this interpreter, as the benches of the twin run it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import twin_table
from measure import Cost, cost
from topolane.baseline.measures import Runs


def topolane(*words: str | Path) -> Cost:
    """What a command took and printed. Raises BenchError if it fails."""
    call = "import sys; from topolane.cli import main; sys.exit(main())"
    return cost([sys.executable, "-c", call, *words])


def replayed(log: Path, queue: str, how: Sequence[str | Path]) -> Runs:
    """The runs of a log under a queue. how: machine and policy as options. Raises BenchError and OSError."""
    out = log.with_name("replay")
    topolane("simulate", "--trace", log, "--queue", queue, *how, "--no-report", "--out", out)
    return twin_table.replayed(out / "jobs.csv")
