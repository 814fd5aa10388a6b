"""How long a simulated minute of 64 cores with four jobs of 64 threads takes.

`python benches/gang/minute.py [--quick]`, with cargo; `crates/gang/benches/minute.rs` is what is run.
Exit code 1 if the target was missed.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benches"))

from measure import HEADINGS, Row, cost, table

LIMIT = 1.0
"""Seconds."""
RUNS = 5


def minute(quick: bool) -> list[Row]:
    """Real seconds by workload and policy."""
    cargo = shutil.which("cargo")
    if cargo is None:
        return [Row("minute", "a simulated minute", "s", (), LIMIT, note="no cargo")]
    command = [cargo, "bench", "-q", "-p", "topolane-gang", "--bench", "minute", "--locked"]
    cost(command, directory=ROOT)  # builds it
    seen = [json.loads(cost(command, directory=ROOT).output) for _ in range(1 if quick else RUNS)]
    return [
        Row(
            "minute",
            f"four jobs of 64 threads on 64 cores: {what}",
            "s",
            tuple(run[what] for run in seen),
            LIMIT,
        )
        for what in seen[0]
    ]


def main() -> int:
    """Prints them."""
    parser = argparse.ArgumentParser(description="Measure the simulated hypervisor.")
    parser.add_argument("--quick", action="store_true", help="once")
    rows = minute(parser.parse_args().quick)
    print(table([HEADINGS, *(row.cells() for row in rows)]))
    return int(any(row.verdict == "MISSED" for row in rows))


if __name__ == "__main__":
    sys.exit(main())
