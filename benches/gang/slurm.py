"""Measures two barrier-coupled jobs under Slurm's own gang scheduling and under Topolane's.

It needs root and Slurm's daemons. `docs/explanation/gang.md` explains the figures. `--alone` is for a machine
that is not quiet: everything that is measured gets the largest CPU share that control groups can give.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import systems
from live_cluster import script
from measure import Options, Result, number, table
from priority import Ahead
from topolane_gang.study import gang_programs as programs

INTERVALS = (0.0002, 0.001, 0.005)
CORES = 2
WINDOWS = (1.0, 10.0)
"""Lengths of windows, in seconds, within which both jobs should make equal progress."""


@dataclasses.dataclass(frozen=True)
class Figures:
    """The results of two jobs under one system."""

    interval: float
    """CPU seconds between two barriers."""
    system: str
    shares: tuple[float, float]
    """Iterations of each job, relative to half of those of a job that runs alone."""
    lesser: tuple[float, ...]
    """For each of WINDOWS: the fraction of a window's iterations by the job that did less, as the median over
    windows. 0.5 is even.
    """
    pause: float
    """The longest time from one barrier of a job to the next, in seconds."""

    def cells(self) -> list[str]:
        """The row as text."""
        shares = [f"{100 * share:.1f} %" for share in self.shares]
        lesser = [f"{part:.2f}" for part in self.lesser]
        return [f"{1e3 * self.interval:g} ms", self.system, *shares, *lesser, f"{number(self.pause)} s"]


HEADINGS = [
    "barrier every",
    "who switches",
    "job 1, of a fair half",
    "job 2",
    *(f"lesser's part of {window:g} s" for window in WINDOWS),
    "longest pause",
]


def figures(
    interval: float, system: str, alone: float, ends: Sequence[Sequence[float]], begun: float, seconds: float
) -> Figures:
    """The figures from the times at which iterations of both jobs ended. alone: iterations per second of a
    job that runs alone.
    """
    until = begun + seconds
    within = [[end for end in each if begun <= end < until] for each in ends]
    shares = [len(each) / (alone * seconds / 2) for each in within]
    pauses = [later - sooner for each in within for sooner, later in zip([begun, *each], [*each, until])]
    lesser = [lesser_part(within, begun, window, round(seconds / window)) for window in WINDOWS]
    return Figures(interval, system, (shares[0], shares[1]), tuple(lesser), max(pauses))


def lesser_part(within: Sequence[Sequence[float]], begun: float, window: float, windows: int) -> float:
    """The median of the lesser job's fraction over the windows in which any job made progress."""
    counts = [[0] * windows for _ in within]
    for count, each in zip(counts, within):
        for end in each:
            count[min(int((end - begun) / window), windows - 1)] += 1
    return statistics.median(min(pair) / sum(pair) for pair in zip(*counts) if sum(pair))


def measured(folder: Path, cluster: systems.Cluster, seconds: float, ahead: Ahead) -> Iterator[Figures]:
    """All figures, one after another."""
    program = programs.build(folder)
    rate = programs.measured_rate(program)
    for interval in INTERVALS:
        workload = programs.Barrier(interval)

        def words(log: Path, seconds: float, workload: programs.Barrier = workload) -> list[str]:
            run = programs.ProgramRun(workload, seconds)
            return [str(program), *run.words(rate, log), "--threads", str(CORES)]

        # The speed of a shared machine changes, so it is measured before and after each run.
        before = systems.alone(words, folder, seconds / 5)
        for system in systems.SYSTEMS:
            with system.running(cluster, ahead) as start:
                logs = [folder / f"{system.name}-{interval}-{job}" for job in (1, 2)]
                for log in logs:
                    start(words(log, system.before + seconds + 1))
                begun = time.monotonic() + system.before
                ends = [systems.ends(log, begun + 3 * seconds + 60) for log in logs]
            after = systems.alone(words, folder, seconds / 5)
            yield figures(interval, system.name, (before + after) / 2, ends, begun, seconds)
            before = after


def measure(options: Options) -> Result:
    """Prints the figures."""
    checked = script("check")
    if checked.returncode:
        raise RuntimeError(checked.stderr.strip())
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        ahead = stack.enter_context(Ahead(options.alone))
        cluster = stack.enter_context(systems.cluster(folder / "slurm", CORES))
        rows = []
        for row in measured(folder, cluster, 10 if options.quick else 20, ahead):
            rows.append(row)
            if sys.stderr.isatty():
                print(" ".join(row.cells()), file=sys.stderr)
    print(table([HEADINGS, *(row.cells() for row in rows)]))
    return Result(facts=[dataclasses.asdict(row) for row in rows])
