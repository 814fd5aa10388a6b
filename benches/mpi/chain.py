"""A broadcast inside one site: from rank to rank in chunks (a chain), and as the MPI does it.

    python benches/mpi/chain.py [--hosts 8 16 32] [--each 1] [--mpi mpich] [--bytes BYTES ...]

Root only: it makes a network namespace for each host (far_sites.py), all on one site. Ranks are dealt out to the hosts in
turn. The two ways take turns in one run. Times are medians.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator

from far_sites import HERE, far_sites, run

MBIT = 1000.0
SIZES = tuple(kib << 10 for kib in (64, 96, 128, 192, 256, 448, 512, 960, 1024))
MOST_REPEATS = 256
"""As many as chain.c has room for."""


def rows(mpi: str, hosts: int, options: argparse.Namespace) -> Iterator[str]:
    """A line of the table for each size. Raises CalledProcessError if the program fails."""
    with far_sites((0,) * hosts, 0.0, MBIT) as far:
        program, meeting = far.folder / "chain", far.folder / "meeting"
        run(f"mpicc.{mpi}", "-O2", "-w", "-o", program, HERE / "chain.c")
        meeting.write_bytes(bytes(8192))
        words = [program, meeting, str(options.repeats), *map(str, options.bytes)]
        command = far.launch(mpi, {}, words, each=options.each)
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=600)
    found: dict[int, dict[str, float]] = {}
    for line in done.stdout.splitlines():
        size, way, *seconds = line.split()
        found.setdefault(int(size), {})[way] = 1e3 * statistics.median(map(float, seconds))
    for size, ways in found.items():
        chain, broadcast = ways["chain"], ways["broadcast"]
        yield (
            f"| {mpi} | {hosts} | {hosts * options.each} | {size >> 10} KiB | {chain:.1f} | {broadcast:.1f} | "
            f"{broadcast / chain:.2f} |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description="Time a chain and the MPI's own broadcast inside a site.")
    parser.add_argument("--hosts", nargs="+", type=int, default=[8, 16, 32], metavar="N")
    parser.add_argument("--each", type=int, default=1, metavar="RANKS", help="on every host, dealt [1]")
    parser.add_argument("--mpi", nargs="+", choices=("mpich", "openmpi"), default=["mpich", "openmpi"])
    parser.add_argument("--bytes", nargs="+", type=int, default=SIZES, metavar="BYTES", help="up to 4 MiB")
    parser.add_argument("--repeats", type=int, default=5, metavar="N", help="of each call [5]")
    options = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("benches/mpi/chain.py makes network namespaces: run it as root")
    if not 0 < options.repeats <= MOST_REPEATS or not all(0 < size <= 4 << 20 for size in options.bytes):
        sys.exit(f"chain.py: repeats are 1 to {MOST_REPEATS}, sizes 1 byte to 4 MiB")
    print("| MPI | hosts | ranks | segment | chain, ms | broadcast, ms | broadcast / chain |")
    print("|---|---|---|---|---|---|---|")
    for hosts in options.hosts:
        for mpi in options.mpi:
            for row in rows(mpi, hosts, options):
                print(row, flush=True)


if __name__ == "__main__":
    main()
