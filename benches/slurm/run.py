"""Measures the Slurm driver on a real Slurm on this machine: `make bench-slurm`.

`python benches/slurm/run.py [--quick | --nodes N] [--json FILE] [--only FIGURE]`, as root on Debian with
the packages that `tests/slurm/cluster.sh check` wants, with the interpreter Topolane is installed in.
1,296 nodes take 10 GB of memory. `docs/explanation/benchmarks.md` says what the figures mean. Exit code 1 if a
target was missed, 2 if a component is missing.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[level]) for level in (0, 1)]

from beside import rows_of
from live import cancel_all, cluster
from live_cluster import Cluster, script
from measure import HEADINGS, Row, table
from scale import QUICK, Scale
from speed import decision, idle, resync
from starts import starts

FIGURES = {"idle": idle, "decision": decision, "resync": resync, "starts": starts}
FILLS = ("decision",)
"""What leaves jobs for the next one."""
BESIDE = "beside"


def arguments() -> argparse.Namespace:
    """What the user asks for."""
    parser = argparse.ArgumentParser(description="Measure the Slurm driver.")
    parser.add_argument("--quick", action="store_true", help="72 nodes and little of everything")
    parser.add_argument("--nodes", type=int, help="so many nodes [default: 1296]")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures here as well")
    parser.add_argument(
        "--only", choices=[*FIGURES, BESIDE], action="append", help="this figure (repeatable)"
    )
    return parser.parse_args()


def measure(scale: Scale, wanted: list[str], scratch: Path) -> tuple[list[Row], dict[str, list[list[str]]]]:
    """The figures, and the tables of the comparison."""
    rows: list[Row] = []
    tables: dict[str, list[list[str]]] = {}
    say(f"starting Slurm with {scale.nodes:,} nodes")
    with cluster(scale.nodes, scratch / "slurm") as up:
        for name, figure in FIGURES.items():
            if name in wanted:
                say(f"measuring {name}")
                rows += (found := measured(name, figure, up, scale))
                for row in found:
                    say(" | ".join(row.cells()[1:]))
                if name not in FILLS:
                    cancel_all(up)
        cancel_all(up)
        if BESIDE in wanted:
            say("running the workload under each system")
            tables["what happened, and what was predicted"], tables["starts of jobs"] = rows_of(
                up, scale, scratch
            )
    return rows, tables


def measured(
    name: str, figure: Callable[[Cluster, Scale], list[Row]], up: Cluster, scale: Scale
) -> list[Row]:
    """A figure's rows, or one row that says why there are none."""
    try:
        return figure(up, scale)
    except (AssertionError, RuntimeError, subprocess.TimeoutExpired) as error:
        say(str(error))
        return [Row(name, "failed", "", (), note="see above")]


def say(text: str) -> None:
    """Progress, beside what is printed."""
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


def facts(scale: Scale, rows: list[Row], tables: dict[str, list[list[str]]]) -> dict[str, object]:
    """What is printed, as JSON holds it."""
    kept = {title: [dict(zip(lines[0], line)) for line in lines[1:]] for title, lines in tables.items()}
    machine = {"cores": os.cpu_count(), "machine": platform.machine(), "python": platform.python_version()}
    return {
        "machine": machine,
        "scale": dataclasses.asdict(scale),
        "figures": [row.facts() for row in rows],
        "beside": kept,
    }


def end(*_: object) -> None:
    """The cluster is taken down first, and a second signal does not stop that."""
    signal.signal(signal.SIGTERM, lambda *_: None)
    sys.exit(1)


def main() -> int:
    """Measures, prints and writes; 1 if a target was missed."""
    options = arguments()
    missing = script("check")
    if missing.returncode:
        print(missing.stderr.strip(), file=sys.stderr)
        return 2
    signal.signal(signal.SIGTERM, end)
    scale = QUICK if options.quick else Scale()
    if options.nodes:
        scale = dataclasses.replace(scale, nodes=options.nodes)
    # Its sockets want a short path.
    with tempfile.TemporaryDirectory(prefix="tb-", dir="/tmp") as scratch:
        rows, tables = measure(scale, options.only or [*FIGURES, BESIDE], Path(scratch))
    if rows:
        print(table([HEADINGS, *(row.cells() for row in rows)]))
    for title, lines in tables.items():
        print(f"\n{title}:\n\n{table(lines)}")
    if options.json:
        options.json.write_text(json.dumps(facts(scale, rows, tables), indent=2) + "\n")
    return 1 if any(row.verdict == "MISSED" or row.what == "failed" for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
