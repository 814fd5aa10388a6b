"""Measures two barrier-coupled jobs under Slurm's own gang scheduling and under Topolane's.

It needs root and Slurm's daemons. `docs/explanation/gang.md` says what the figures mean. `--alone` is for a machine that is not
quiet: all that is measured has the largest share of the CPUs that control groups can give.
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
from topolane.studies import gang_programs as programs

INTERVALS = (0.0002, 0.001, 0.005)
CORES = 2
WINDOWS = (1.0, 10.0)
"""Seconds of a time in which both jobs should have got on alike."""


@dataclasses.dataclass(frozen=True)
class Figures:
    """What two jobs did under one system."""

    interval: float
    """Seconds of CPU between two barriers."""
    system: str
    shares: tuple[float, float]
    """Iterations of each job, as a share of half of those that a job does alone."""
    lesser: tuple[float, ...]
    """The part of the job that did less, of both jobs' iterations in a window, for each of WINDOWS; the median. Even
    is 0.5."""
    pause: float
    """Seconds from one barrier of a job to the next: the longest."""

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
    """Of the ends of the iterations of both jobs; `alone`: iterations a second of a job that is alone."""
    until = begun + seconds
    within = [[end for end in each if begun <= end < until] for each in ends]
    shares = [len(each) / (alone * seconds / 2) for each in within]
    pauses = [later - sooner for each in within for sooner, later in zip([begun, *each], [*each, until])]
    lesser = [lesser_part(within, begun, window, round(seconds / window)) for window in WINDOWS]
    return Figures(interval, system, (shares[0], shares[1]), tuple(lesser), max(pauses))


def lesser_part(within: Sequence[Sequence[float]], begun: float, window: float, windows: int) -> float:
    """The median over the windows in which a job did anything."""
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
            run = programs.Run(workload, seconds)
            return [str(program), *run.words(rate, log), "--threads", str(CORES)]

        # The speed of a shared machine drifts: it is looked at before each run and after it.
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
