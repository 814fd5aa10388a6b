"""Measures how long a simulated minute of 64 cores with four jobs of 64 threads takes.

It runs `crates/gang/benches/minute.rs` with cargo.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

from measure import Options, Row, cost

LIMIT = 1.0
"""In seconds."""
RUNS = 5


def measure(options: Options) -> list[Row]:
    """Real seconds by workload and policy."""
    cargo = shutil.which("cargo")
    if cargo is None:
        return [Row("minute", "a simulated minute", "s", (), LIMIT, note="no cargo")]
    command = [cargo, "bench", "-q", "-p", "topolane-gang", "--bench", "minute", "--locked"]
    cost(command, directory=ROOT)  # builds the benchmark
    seen = [json.loads(cost(command, directory=ROOT).output) for _ in range(1 if options.quick else RUNS)]
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
