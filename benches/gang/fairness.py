"""Measures how evenly the default policy divides the cores between two equal programs that spin at barriers.

It needs root, a quiet machine with two cores and a C compiler. Two OpenMP programs run as gangs under
`adaptive`. The steps of each are counted for ten seconds, beginning one second after the start.
"""

from __future__ import annotations

import subprocess
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve()

from measure import Options, Result, table
from topolane_gang.agent import Agent

CORES = (0, 1)
STEPS = {"0.1 ms": 100_000, "1 ms": 1_000_000}
"""The number of additions between two barriers, by their approximate duration."""
SECONDS = 10.0
TARGET = 1.2
ENVIRONMENT = {"OMP_WAIT_POLICY": "active", "OMP_NUM_THREADS": str(len(CORES))}


def steps(file: Path) -> int:
    """The number of steps so far."""
    return int(file.read_text().split()[0])


def run(program: Path, work: int, folder: Path) -> list[int]:
    """The steps of both programs in ten seconds."""
    files = [folder / name for name in ("one", "other")]
    with Agent(cores=CORES) as agent:
        for file in files:
            words = [str(program), str(work), str(file)]
            agent.start(file.name, words, threads=len(CORES), environment=ENVIRONMENT)
        time.sleep(1)
        before = [steps(file) for file in files]
        time.sleep(SECONDS)
        return [steps(file) - first for file, first in zip(files, before, strict=True)]


def measure(options: Options) -> Result:
    """Prints the ratio of every run."""
    found = []
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        program = folder / "counting"
        subprocess.run(["cc", "-O2", "-fopenmp", "-o", program, HERE.parent / "counting.c"], check=True)
        for every, work in STEPS.items():
            for _ in range(options.runs):
                done = run(program, work, folder)
                found.append({"meets_every": every, "steps": done, "ratio": max(done) / min(done)})
    rows = [[one["meets_every"], *map(str, one["steps"]), f"{one['ratio']:.3f}"] for one in found]
    print(table([["meets every", "steps of one", "of the other", "ratio"], *rows]))
    worst = max(one["ratio"] for one in found)
    print(f"worst {worst:.3f}, target {TARGET}: {'met' if worst <= TARGET else 'MISSED'}")
    return Result(facts=found, failed=worst > TARGET)
