"""Runs the command line of this interpreter's Topolane, for the benches of the twin."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import twin_table
from measure import Cost, cost
from topolane.baseline.measures import RunArrays


def topolane(*words: str | Path) -> Cost:
    """The cost and output of a command. Raises BenchError if it fails."""
    call = "import sys; from topolane.cli import main; sys.exit(main())"
    return cost([sys.executable, "-c", call, *words])


def replayed(log: Path, queue: str, how: Sequence[str | Path]) -> RunArrays:
    """The runs of a log under a queue. how: options for machine and policy. Raises BenchError and OSError."""
    out = log.with_name("replay")
    topolane("simulate", "--trace", log, "--queue", queue, *how, "--no-report", "--out", out)
    return twin_table.replayed(out / "jobs.csv")
