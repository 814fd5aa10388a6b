"""Runs a plan of a flavour on a real Slurm: `flavour_run.py FLAVOUR SEED OUT`. It needs root and mmdebstrap."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [
    str(ROOT / part) for part in ("benches", "benches/slurm", "tests", "tests/slurm", "tests/live/slurm")
]

import flavour_plan
import slurm_sites
import twin_run

MACHINE = "machine.toml"


def main(flavour: str, seed: str, out: str) -> None:
    """Writes the records of a run into a folder. Raises RuntimeError."""
    slurm_sites.enter()
    where = Path(out)
    twin_run.record(flavour_plan.plan(flavour, int(seed)), where, logs=True)
    (where / MACHINE).write_text(flavour_plan.machine(flavour, twin_run.PREFIX))


if __name__ == "__main__":
    main(*sys.argv[1:])
