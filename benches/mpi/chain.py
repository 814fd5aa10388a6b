"""Compares a broadcast inside one site from rank to rank in chunks (a chain) with the MPI's own broadcast.

It needs root, because it makes a network namespace for each host (far_sites.py), all on one site. Ranks are
assigned to the hosts in turn. The two ways alternate within one run. Times are medians.
"""

from __future__ import annotations

import statistics
import subprocess
from collections.abc import Iterator

from far_sites import HERE, far_sites, run
from measure import Options, Result

MBIT = 1000.0
MOST_REPEATS = 256
"""The number of times that chain.c can store."""


def rows(mpi: str, hosts: int, options: Options) -> Iterator[str]:
    """The line of the table for each size. Raises CalledProcessError if the program fails."""
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


def measure(options: Options) -> Result:
    """Prints a line for each size. Raises ValueError for options that chain.c does not accept."""
    if not 0 < options.repeats <= MOST_REPEATS or not all(0 < size <= 4 << 20 for size in options.bytes):
        raise ValueError(f"repeats are 1 to {MOST_REPEATS}, sizes 1 byte to 4 MiB")
    print("| MPI | hosts | ranks | segment | chain, ms | broadcast, ms | broadcast / chain |")
    print("|---|---|---|---|---|---|---|")
    for hosts in options.hosts:
        for mpi in options.mpi:
            for row in rows(mpi, hosts, options):
                print(row, flush=True)
    return Result()
