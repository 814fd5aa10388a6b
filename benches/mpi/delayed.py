"""Measures collectives over a WAN with a real delay: two levels, flat, and the least possible time.

It needs root, because it makes a network namespace for each rank as its host, with a delay between sites
(far_sites.py). All times are in one-way latencies of the WAN. No program can be faster than the least time:
one latency, plus the bytes that a site needs from another one over the bandwidth of the link between them:

    barrier    1
    bcast, reduce, allreduce    1 + bytes / (bandwidth x latency)
    allgather  1 + bytes x ranks of a site / (bandwidth x latency)

The time of a call is the median of its repetitions, from the moment when all ranks begin until the last one
has finished.
"""

from __future__ import annotations

import dataclasses
import statistics
import subprocess
import sys
from collections.abc import Iterator

from far_sites import HERE, SETTINGS, FarSites, far_sites, run
from measure import Options, Result
from topolane.mpi import build

RANKS = {2: 8, 3: 9}
"""The number of ranks for each number of sites."""
MBIT = 1000.0
GOAL, GOAL_BYTES, WORSE = 1.25, 65536, 1.05
"""Targets: relative to the least time, for up to GOAL_BYTES; and relative to flat, for every size."""
PAUSE = 0.06
"""The least pause between two calls, in seconds, so that nothing of the previous call is under way."""
IDLE_PAUSE = 0.5
"""The time after which an idle TCP connection forgets its window."""


@dataclasses.dataclass(frozen=True)
class Cell:
    """One call with one size in one setting. Times are in latencies of the WAN."""

    mpi: str
    sites: int
    placement: str
    call: str
    bytes: int
    least: float
    library: float
    flat: float

    @property
    def missed(self) -> str:
        """The targets that the cell misses."""
        goals = []
        if self.bytes <= GOAL_BYTES and self.library > GOAL * self.least:
            goals.append("least")
        if self.library > WORSE * self.flat:
            goals.append("flat")
        return ", ".join(goals)

    def __str__(self) -> str:
        return (
            f"| {self.mpi} | {self.sites} | {self.placement} | {self.call} | {self.bytes:,} | {self.least:.2f} | "
            f"{self.library:.2f} | {self.flat:.2f} | {self.library / self.least:.2f} | {self.missed} |"
        )


HEAD = (
    "| MPI | sites | ranks | call | bytes | least | two levels | flat | two levels / least | missed |\n"
    "|---|---|---|---|---|---|---|---|---|---|"
)


@dataclasses.dataclass(frozen=True)
class Setting:
    """The settings of one run of the program."""

    mpi: str
    sites: int
    placement: str

    @property
    def site_of(self) -> tuple[int, ...]:
        ranks = RANKS[self.sites]
        if self.placement == "dealt":
            return tuple(rank % self.sites for rank in range(ranks))
        return tuple(rank * self.sites // ranks for rank in range(ranks))

    def least(self, call: str, size: int, delay: float) -> float:
        """The latencies that no program can avoid."""
        crosses = size * (RANKS[self.sites] // self.sites if call == "allgather" else 1)
        return 1 + 8 * crosses / (MBIT * 1e6) / delay


def measured(setting: Setting, far: FarSites, options: Options) -> Iterator[Cell]:
    """The cells of a setting. Raises CalledProcessError if the program fails."""
    program, meeting = far.folder / f"delayed-{setting.mpi}", far.folder / "meeting"
    run(f"mpicc.{setting.mpi}", "-O2", "-w", "-o", program, HERE / "delayed.c")
    meeting.write_bytes(bytes(8192))
    environment = {
        "TOPOLANE_MPI_SITES": ",".join(map(str, setting.site_of)),
        "TOPOLANE_MPI_TWO_LEVEL": options.mode,
        "LD_PRELOAD": str(build.library(f"mpicc.{setting.mpi}")),
    }
    words = [
        f"{call}={0 if call == 'barrier' else ','.join(map(str, options.bytes))}" for call in options.calls
    ]
    repeats, pause = str(options.repeats), str(IDLE_PAUSE if options.idle else PAUSE)
    command = far.launch(setting.mpi, environment, [program, meeting, repeats, pause, *words])
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=600)
    medians: dict[tuple[str, int], dict[str, float]] = {}
    for line in done.stdout.splitlines():
        call, size, way, *seconds = line.split()
        medians.setdefault((call, int(size)), {})[way] = statistics.median(map(float, seconds)) / far.delay
    for (call, size), ways in medians.items():
        least = setting.least(call, size, far.delay)
        yield Cell(
            setting.mpi, setting.sites, setting.placement, call, size, least, ways["library"], ways["flat"]
        )


def of_network(far: FarSites) -> str:
    """The measured properties of the network, as text."""
    trips = far.round_trips()
    middle, late = statistics.median(trips), trips[int(0.99 * len(trips))]
    return (
        f"Round trip: median {1e3 * middle:.2f} ms, 99 % within {1e3 * late:.2f} ms. "
        f"One TCP connection: {far.throughput() / 1e6:.0f} Mbit/s."
    )


def all_cells(options: Options) -> Iterator[Cell | str]:
    """First the properties of the network as text, and then all cells."""
    settings = [
        Setting(mpi, int(sites), placement)
        for sites in options.sites
        for placement in options.ranks
        for mpi in options.mpi
    ]
    system = SETTINGS | {"net.ipv4.tcp_slow_start_after_idle": "1" if options.idle == "slow-start" else "0"}
    for done, setting in enumerate(settings):
        if sys.stderr.isatty():
            bar = "#" * done + "." * (len(settings) - done)
            print(
                f"\r[{bar}] {setting.mpi}, {setting.sites} sites, {setting.placement}  ",
                end="",
                file=sys.stderr,
            )
        with far_sites(setting.site_of, 1e-3 * options.delay, MBIT, system) as far:
            if done == 0:
                yield of_network(far)
            yield from measured(setting, far, options)
    if sys.stderr.isatty():
        print(file=sys.stderr)


def measure(options: Options) -> Result:
    """Prints the network and every cell."""
    network, *cells = all_cells(options)
    print(network, HEAD, *cells, sep="\n")
    missed = sum(bool(cell.missed) for cell in cells if isinstance(cell, Cell))
    print(f"\n{missed} of {len(cells)} cells miss a goal.")
    return Result(facts={"network": network, "cells": [dataclasses.asdict(cell) for cell in cells]})
