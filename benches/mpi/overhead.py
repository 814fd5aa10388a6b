"""What watching costs: `make bench-mpi`, or `python benches/mpi/overhead.py [--quick] [--json] [--programs DIR]`.

Runs in pairs, without the library and with it (reporting to a receiver every second), in turns, with each MPI of
Debian that is installed. `--programs` names a directory with programs that print "Time in seconds = T", as NPB's do,
for the MPI that --mpi names; their names end in the number of ranks, as cg.W.2 does.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent
TOPOLANE = [
    sys.executable,
    "-c",
    "from topolane.cli import main; main()",
    "mpi",
    "run",
    "--out",
    os.devnull,
    "--",
]
# More ranks than cores, by whomever it is measured.
AROUND = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
}
ROUNDS = {"cg": 2000, "lu": 2000, "mg": 1500, "ep": 1500}
"""Of a kernel: some seconds each."""


@dataclasses.dataclass(frozen=True)
class Row:
    """Pairs of one figure."""

    mpi: str
    what: str
    unit: str
    without: list[float]
    watched: list[float]

    @property
    def ratio(self) -> float:
        """The least of the watched over the least of the others: what disturbs a run makes it longer."""
        return min(self.watched) / min(self.without)

    @property
    def more(self) -> float:
        """Median over the pairs of what is more with the library."""
        return statistics.median(after - before for before, after in zip(self.without, self.watched))


def figure(command: Sequence[str]) -> float:
    """The number that a program prints."""
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | AROUND)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: exit code {done.returncode}: {done.stderr.strip()[-300:]}")
    found = re.search(r"Time in seconds\s*=\s*([0-9.]+)", done.stdout) or re.search(r"([0-9.]+)", done.stdout)
    assert found is not None, done.stdout
    return float(found[1])


def pairs(mpi: str, what: str, unit: str, command: Sequence[str], times: int) -> Row:
    """Runs in turns; a first pair that compiles the library and warms up is not counted."""
    figure([*TOPOLANE, *command])
    without, watched = [], []
    for _ in range(times):
        without.append(figure(command))
        watched.append(figure([*TOPOLANE, *command]))
    row = Row(mpi, what, unit, without, watched)
    print(words(row), file=sys.stderr, flush=True)
    return row


def words(row: Row) -> str:
    first, second = min(row.without), min(row.watched)
    return (
        f"| {row.mpi} | {row.what} | {first:.4g} {row.unit} | {second:.4g} {row.unit} | "
        f"{second - first:+.3g} {row.unit} | {100 * (row.ratio - 1):+.1f} % | {row.more:+.3g} {row.unit} |"
    )


def measure(mpi: str, times: int, quick: bool, programs: Path | None) -> list[Row]:
    """All rows of one MPI."""
    rows = []
    with tempfile.TemporaryDirectory() as scratch:
        for name in ("pingpong", "kernels"):
            made = ["-O2", "-w", "-o", f"{scratch}/{name}", str(HERE / f"{name}.c")]
            subprocess.run([f"mpicc.{mpi}", *made], check=True)
        for ranks, what in ((1, "a call, to itself"), (2, "a call, ping-pong")):
            command = [f"mpiexec.{mpi}", "-n", str(ranks), f"{scratch}/pingpong"]
            rows.append(pairs(mpi, what, "ns", command, times))
        for name, rounds in ROUNDS.items():
            number = str(rounds // 20 if quick else rounds)
            # As many ranks as cores: more of them measure the scheduler.
            command = [f"mpiexec.{mpi}", "-n", "2", f"{scratch}/kernels", name, number]
            rows.append(pairs(mpi, f"{name}-like, 2 ranks", "s", command, times))
    for program in sorted(programs.iterdir()) if programs else ():
        rows.append(
            pairs(mpi, program.name, "s", [f"mpiexec.{mpi}", "-n", program.suffix[1:], str(program)], times)
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure what watching costs.")
    parser.add_argument("--quick", action="store_true", help="short kernels, two pairs")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all runs here as well")
    parser.add_argument("--mpi", action="append", choices=["mpich", "openmpi"], help="this one (repeatable)")
    parser.add_argument(
        "--programs", type=Path, metavar="DIR", help="more programs, as cg.W.2: 2 is the ranks"
    )
    asked = parser.parse_args()
    rows = []
    for mpi in asked.mpi or ["mpich", "openmpi"]:
        if shutil.which(f"mpiexec.{mpi}") is None or shutil.which(f"mpicc.{mpi}") is None:
            print(f"not measured: mpicc.{mpi} or mpiexec.{mpi} is missing", file=sys.stderr)
            continue
        rows += measure(mpi, 2 if asked.quick else 7, asked.quick, asked.programs)
    print("| MPI | what | without | watched | more, least of all | | more, median of pairs |")
    print("|---|---|---|---|---|---|---|")
    print("\n".join(map(words, rows)))
    if asked.json:
        asked.json.write_text(json.dumps([dataclasses.asdict(row) for row in rows], indent=2))


if __name__ == "__main__":
    main()
